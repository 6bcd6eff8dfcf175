-- A page of the resources whose grants stand on a session. ARGV[4]: the session; ARGV[5]: after which name, or empty;
-- ARGV[6]: how many.
local first = (ARGV[5] == '' and '[' or '(') .. ARGV[4] .. ' ' .. ARGV[5]
local answer = {'ok', text(now), identity}
for _, held in ipairs(redis.call('ZRANGEBYLEX', p .. 'held', first, '(' .. ARGV[4] .. '!', 'LIMIT', 0, ARGV[6])) do
  answer[#answer + 1] = redis.call('HGET', own, 'l:' .. string.sub(held, 34))
end
return answer
