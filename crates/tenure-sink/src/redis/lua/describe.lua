-- ARGV: resource, rule.
local no, generation, floor, fence = look(KEYS[1], ARGV[2], ARGV[1])
if no then return no end
return {'ok', generation, floor, fence or ''}
