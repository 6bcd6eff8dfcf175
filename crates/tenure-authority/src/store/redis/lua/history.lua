-- A piece of the history. ARGV[3], ARGV[4]: the numbers of its first and last row.
local answer = {'ok', text(now), identity, redis.call('LLEN', p .. 'history') - 1}
for _, row in ipairs(redis.call('LRANGE', p .. 'history', ARGV[3], ARGV[4])) do answer[#answer + 1] = row end
return answer
