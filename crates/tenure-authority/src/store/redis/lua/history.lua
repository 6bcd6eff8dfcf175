-- A piece of the history. ARGV[4], ARGV[5]: the numbers of its first and last row.
local answer = {'ok', text(now), identity, redis.call('LLEN', p .. 'history') - 1}
for _, row in ipairs(redis.call('LRANGE', p .. 'history', ARGV[4], ARGV[5])) do answer[#answer + 1] = row end
return answer
