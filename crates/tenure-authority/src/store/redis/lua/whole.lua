-- Each key has a mark, so that none is ever absent while the store is whole.
if redis.call('EXISTS', p .. 'names', p .. 'held', p .. 'live', p .. 'former', p .. 'ended', p .. 'history') < 6 then
  return {'lost', ''}
end
