-- The sessions that nobody has ended though they are over, by their deadlines, then those that ended longest ago.
-- ARGV[4]: how many.
local most = tonumber(ARGV[4])
local answer = {'ok', text(now), identity}
local former = redis.call('ZRANGEBYSCORE', p .. 'former', '-inf', '(inf', 'WITHSCORES', 'LIMIT', 0, most)
-- Renewals leave the list of the living as it is. Here it is put right, as far as it is looked at.
local over, is_right
repeat
  is_right = true
  over = redis.call('ZRANGEBYSCORE', p .. 'live', '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, most)
  for at = 1, #over, 2 do
    local session = redis.call('HGET', own, 's:' .. over[at])
    local micros, rest = string.match(session or '', '^%S+ %S+ (%d+)(%d%d%d) ')
    local deadline = tonumber(micros) and tonumber(micros) + (rest == '000' and 0 or 1)
    if deadline and deadline > tonumber(over[at + 1]) then
      redis.call('ZADD', p .. 'live', text(deadline), over[at])
      is_right = false
    end
  end
until is_right
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
