-- Each key has a mark, so that none is ever absent while the store is whole.
if redis.call('EXISTS', p .. 'sessions', p .. 'leases', p .. 'names', p .. 'holdings', p .. 'live', p .. 'former',
  p .. 'ended', p .. 'history', p .. 'grants') < 9 then return {'lost', ''} end
