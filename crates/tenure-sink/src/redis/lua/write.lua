-- One command, fenced: ARGV[8] its name, KEYS from the second on its keys, then ARGV from the ninth on. A command that fails
-- has changed nothing.
return apply(function()
  local said = misplaced(ARGV[8])
  if said then return said end
  if #KEYS == 2 then
    said = redis.pcall(ARGV[8], KEYS[2], unpack(ARGV, 9))
  else
    local whole = {unpack(KEYS, 2)}
    for at = 9, #ARGV do whole[#whole + 1] = ARGV[at] end
    said = redis.pcall(ARGV[8], unpack(whole))
  end
  if type(said) == 'table' and said.err then return said.err end
end)
