-- Registers a token as tenure_core::fence::seal judges. ARGV: resource, epoch, grant, rule, the generation that was bound,
-- the enrolled sinks, each on a line of its own.
local own, resource, epoch, grant, bound, enrolled = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6]
local no, generation, floor, fence = look(own, ARGV[4], resource)
if no then return no end
if bound ~= generation then return {'generation', generation} end
local seal_no = '1'
if fence then
  local at_epoch, at_grant, _, number, names = parts_of(fence)
  if not at_epoch then return {'damaged', fence} end
  if is_below(epoch, at_epoch) then return {'older', at_epoch, at_grant} end
  if epoch == at_epoch and grant ~= at_grant then return {'other', at_epoch, at_grant} end
  seal_no = string.format('%.0f', number + 1)
  local known = {}
  for name in string.gmatch(names, '[^\n]+') do known[name] = true end
  for name in string.gmatch(enrolled, '[^\n]+') do
    if not known[name] then
      known[name] = true
      names = names == '' and name or names .. '\n' .. name
    end
  end
  enrolled = names
elseif floor ~= '-' and not is_below(floor, epoch) then
  return {'floor', floor}
end
local failed, sealed = register(own, resource, not fence, epoch, grant, generation, seal_no, enrolled)
if failed then return failed end
-- Somebody may have given them a time to live.
for _, key in ipairs({own, beside(own, 'names'), beside(own, 'operations')}) do redis.pcall('PERSIST', key) end
return {'sealed', sealed}
