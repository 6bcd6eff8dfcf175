-- A page of the resources. ARGV[4]: the name after which it begins, or empty; ARGV[5]: how many.
-- The empty name is the mark.
local first = '(' .. ARGV[4]
local names = redis.call('ZRANGEBYLEX', p .. 'names', first, '+', 'LIMIT', 0, ARGV[5])
local answer = {'ok', text(now), identity}
for _, name in ipairs(names) do
  local lease = redis.call('HGET', own, 'l:' .. name)
  local id = lease and string.sub(lease, 1, 32)
  answer[#answer + 1] = lease
  answer[#answer + 1] = id and redis.call('HGET', own, 's:' .. id)
end
return answer
