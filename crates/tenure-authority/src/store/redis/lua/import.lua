-- Fills a store whose history is empty. ARGV[4] the version of its record, ARGV[5] that record, ARGV[6] its incarnation,
-- ARGV[7] how many rows and ARGV[8] how many resources; then each row with its grant, and each resource with its session.
local answer = {'ok', text(now), identity}
if identity ~= m[2] or ARGV[4] ~= m[4] then
  answer[4] = 'again'
  return answer
end
for _, key in ipairs({'held', 'live', 'former', 'ended'}) do redis.call('ZCARD', p .. key) end
local names = redis.call('ZRANGEBYLEX', p .. 'names', '(', '+')
if redis.call('LLEN', p .. 'history') > 1 then
  answer[4] = 'changed'
  return answer
end
local rows, leases = tonumber(ARGV[7]), tonumber(ARGV[8])
local fresh = text(math.max(tonumber(m[6]), now) + 1)
redis.call('PUBLISH', p .. 'changes', '*')
redis.call('HSET', own, 'newest', fresh, 'clock', text(now))
for at = 9, 8 + 2 * rows, 2 do
  redis.call('RPUSH', p .. 'history', ARGV[at])
  if ARGV[at + 1] ~= '' then redis.call('HSET', own, ARGV[at + 1], '') end
end
-- Also one that an unfinished work may have left without a row.
for _, name in ipairs(names) do redis.call('HDEL', own, 'l:' .. name) end
redis.call('DEL', p .. 'names')
redis.call('ZADD', p .. 'names', 0, '')
for at = 9 + 2 * rows, 8 + 2 * rows + 3 * leases, 3 do
  redis.call('HSET', own, 'l:' .. ARGV[at], ARGV[at + 1] .. ' ' .. string.rep('\0', 20) .. fresh .. ' ' .. ARGV[at + 2])
  redis.call('ZADD', p .. 'names', 0, ARGV[at])
end
redis.call('ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live')
redis.call('ZREMRANGEBYSCORE', p .. 'live', '-inf', '(inf')
redis.call('HSET', own, 'record', ARGV[5], 'version', fresh, 'incarnation', ARGV[6])
answer[4] = 'done'
return answer
