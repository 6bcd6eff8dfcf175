-- Closes a resource up to a cut. ARGV: resource, cut, rule.
local own, resource, cut = KEYS[1], ARGV[1], ARGV[2]
local no, _, floor, fence, reopened = look(own, ARGV[3], resource)
if no then return no end
if fence then
  local epoch, grant = parts_of(fence)
  if not epoch then return {'damaged', fence} end
  if is_below(cut, epoch) then return {'above', epoch, grant} end
end
if floor == '-' or is_below(floor, cut) then floor = cut end
-- The floor first: with it, nothing that follows is needed for safety.
redis.call('HSET', own, '', record_of(ARGV[3], reopened, floor))
redis.call('HDEL', own, resource)
redis.call('ZREM', beside(own, 'names'), resource)
return {'forgotten', floor}
