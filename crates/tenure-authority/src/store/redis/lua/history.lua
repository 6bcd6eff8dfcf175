-- A piece of the history. ARGV[3], ARGV[4]: the numbers of its first and last row.
local answer = {'ok', string.format('%.0f', now), identity, redis.call('LLEN', p .. 'history') - 1}
for _, row in ipairs(redis.call('LRANGE', p .. 'history', ARGV[3], ARGV[4])) do answer[#answer + 1] = row end
return answer
