-- The sessions that nobody has ended though they are over, by their deadlines, then those that ended longest ago.
-- ARGV[3]: how many.
local most = tonumber(ARGV[3])
local answer = {'ok', text(now), identity}
local former = redis.call('ZRANGEBYSCORE', p .. 'former', '-inf', '(inf', 'WITHSCORES', 'LIMIT', 0, most)
local over = redis.call('ZRANGEBYSCORE', p .. 'live', '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, most)
local a, b = 1, 1
while #answer - 3 < most and (former[a] or over[b]) do
  local first = former[a] and (not over[b] or tonumber(former[a + 1]) <= tonumber(over[b + 1]))
  if first then
    answer[#answer + 1] = former[a]
    a = a + 2
  else
    answer[#answer + 1] = over[b]
    b = b + 2
  end
end
local left = most - (#answer - 3)
if left > 0 then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'ended', '-inf', '(inf', 'LIMIT', 0, left)) do answer[#answer + 1] = id end
end
return answer
