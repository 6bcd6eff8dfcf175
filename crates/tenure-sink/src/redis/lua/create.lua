-- Makes an empty sink, if there is none. ARGV: rule.
local own = KEYS[1]
local names, records = beside(own, 'names'), beside(own, 'operations')
local info = redis.call('INFO', 'replication')
if not string.find(info, 'role:master', 1, true) then return {'replica'} end
if redis.call('EXISTS', own) == 1 then return {'there'} end
for _, key in ipairs({names, records}) do
  if redis.call('EXISTS', key) == 1 then return {'lost', own} end
end
-- Reopenings are counted from this moment on, in microseconds: a sink that is made again in the place of one that was lost is
-- of another generation, and what was bound for the lost one seals nothing here.
local now = redis.call('TIME')
-- The marks: no resource and no operation has the empty name.
redis.call('ZADD', names, 0, '')
redis.call('HSET', records, '', '1')
redis.call('HSET', own, '', record_of(ARGV[1], now[1] .. string.format('%06d', now[2]), '-'))
return {'made'}
