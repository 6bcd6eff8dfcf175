-- A piece of the history. ARGV[3], ARGV[4]: the places of its first and last row, from 0 or from the end.
local answer = {'ok', string.format('%.0f', now), identity, redis.call('LLEN', p .. 'history')}
for _, row in ipairs(redis.call('LRANGE', p .. 'history', ARGV[3], ARGV[4])) do answer[#answer + 1] = row end
return answer
