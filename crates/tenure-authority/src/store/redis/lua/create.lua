-- Makes an empty store, if nothing is there. ARGV: the identity that the caller has seen, the record, its incarnation.
local own = KEYS[1]
local p = string.sub(own, 1, -6)
local info = redis.call('INFO', 'replication')
if not string.find(info, 'role:master', 1, true) then return {'replica'} end
if 'redis:' .. (string.match(info, 'master_replid:(%x+)') or '') ~= ARGV[1] then return {'again'} end
if redis.call('EXISTS', own) == 1 then return {'again'} end
for _, key in ipairs({'names', 'held', 'live', 'former', 'ended', 'history'}) do
  if redis.call('EXISTS', p .. key) == 1 then return {'foreign'} end
end
local time = redis.call('TIME')
-- Versions begin at the time, so that none comes back when a store of this name was removed before.
local now = time[1] .. string.format('%06d', time[2])
redis.call('HSET', own, 'schema', '1', 'identity', ARGV[1], 'clock', now, 'version', now, 'incarnation', ARGV[3],
  'newest', now, 'record', ARGV[2])
-- The marks: nothing has the empty name, or is infinitely late. The history's is the row before the first.
for _, key in ipairs({'live', 'former', 'ended'}) do redis.call('ZADD', p .. key, 'inf', '') end
for _, key in ipairs({'names', 'held'}) do redis.call('ZADD', p .. key, 0, '') end
redis.call('RPUSH', p .. 'history', '')
return {'made'}
