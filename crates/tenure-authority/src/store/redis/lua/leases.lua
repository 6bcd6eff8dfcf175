-- A page of the resources. ARGV[3]: the name after which it begins, or empty; ARGV[4]: how many.
-- The empty name is the mark.
local first = '(' .. ARGV[3]
local names = redis.call('ZRANGEBYLEX', p .. 'names', first, '+', 'LIMIT', 0, ARGV[4])
local answer = {'ok', text(now), identity}
for _, name in ipairs(names) do
  local lease = redis.call('HGET', p .. 'leases', name)
  local id = lease and string.match(lease, '^%S+ (%S+)')
  answer[#answer + 1] = lease
  answer[#answer + 1] = id and redis.call('HGET', p .. 'sessions', id)
end
return answer
