-- The fences after a name, in the order of names. ARGV: rule, the name (or nothing), how many.
local own = KEYS[1]
local no, _, floor = look(own, ARGV[1], '')
if no then return no end
local names = beside(own, 'names')
if not redis.call('ZSCORE', names, '') then return {'lost', names} end
if redis.call('ZCARD', names) ~= redis.call('HLEN', own) then return {'lost', 'a part of ' .. names} end
local found = redis.call('ZRANGEBYLEX', names, '(' .. ARGV[2], '+', 'LIMIT', 0, ARGV[3])
local rows = {'ok', floor}
if #found == 0 then return rows end
local fences = redis.call('HMGET', own, unpack(found))
for at, name in ipairs(found) do
  if not fences[at] then return {'lost', 'a part of ' .. own} end
  rows[#rows + 1] = name
  rows[#rows + 1] = fences[at]
end
return rows
