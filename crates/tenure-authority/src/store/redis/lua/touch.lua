-- Writes next to nothing, so that what replicas have can be told from here on.
redis.call('HSET', own, 'clock', text(now))
return {'ok', text(now), identity}
