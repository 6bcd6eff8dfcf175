-- A page of the resources whose grants stand on a session. ARGV[3]: the session; ARGV[4]: after which name, or empty;
-- ARGV[5]: how many.
local first = '-'
if ARGV[4] ~= '' then first = '(' .. ARGV[4] end
local answer = {'ok', text(now), identity}
for _, name in ipairs(redis.call('ZRANGEBYLEX', p .. 'held:' .. ARGV[3], first, '+', 'LIMIT', 0, ARGV[5])) do
  answer[#answer + 1] = redis.call('HGET', p .. 'leases', name)
end
return answer
