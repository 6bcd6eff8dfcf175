-- Starts a new generation. ARGV: rule.
local no, generation, floor, _, reopened = look(KEYS[1], ARGV[1], '')
if no then return no end
reopened = string.format('%.0f', reopened + 1)
redis.call('HSET', KEYS[1], '', record_of(ARGV[1], reopened, floor))
return {'ok', string.sub(generation, 1, 40) .. ':' .. reopened}
