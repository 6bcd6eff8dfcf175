-- Fills a store whose history is empty. ARGV[3] the version of its record, ARGV[4] that record, ARGV[5] its incarnation,
-- ARGV[6] how many rows and ARGV[7] how many resources; then each row with its grant, and each resource with its session.
local answer = {'ok', text(now), identity}
if identity ~= m[2] or ARGV[3] ~= m[4] then
  answer[4] = 'again'
  return answer
end
for _, key in ipairs({'names', 'live', 'former', 'ended'}) do redis.call('ZCARD', p .. key) end
redis.call('SCARD', p .. 'grants')
redis.call('HLEN', p .. 'leases')
if redis.call('LLEN', p .. 'history') > 1 then
  answer[4] = 'changed'
  return answer
end
local rows, leases = tonumber(ARGV[6]), tonumber(ARGV[7])
local fresh = text(math.max(tonumber(m[6]), now) + 1)
redis.call('PUBLISH', p .. 'changes', '*')
redis.call('HSET', own, 'newest', fresh, 'clock', text(now))
for at = 8, 7 + 2 * rows, 2 do
  redis.call('RPUSH', p .. 'history', ARGV[at])
  if ARGV[at + 1] ~= '' then redis.call('SADD', p .. 'grants', ARGV[at + 1]) end
end
-- Also one that an unfinished work may have left without a row.
redis.call('DEL', p .. 'leases', p .. 'names')
redis.call('HSET', p .. 'leases', '', '')
redis.call('ZADD', p .. 'names', 0, '')
for at = 8 + 2 * rows, 7 + 2 * rows + 3 * leases, 3 do
  redis.call('HSET', p .. 'leases', ARGV[at], fresh .. ' ' .. ARGV[at + 1] .. ' - ' .. ARGV[at + 2])
  redis.call('ZADD', p .. 'names', 0, ARGV[at])
end
redis.call('ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live')
redis.call('ZREMRANGEBYSCORE', p .. 'live', '-inf', '(inf')
redis.call('HSET', own, 'record', ARGV[4], 'version', fresh, 'incarnation', ARGV[5])
answer[4] = 'done'
return answer
