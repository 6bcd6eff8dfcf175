-- Writes next to nothing, so that what replicas have can be told from here on.
redis.call('HSET', own, 'clock', string.format('%.0f', now))
return {'ok', string.format('%.0f', now), identity}
