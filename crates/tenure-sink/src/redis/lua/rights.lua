-- Whether the user may do all that the verbs do.
if not redis.acl_check_cmd then return {'ok'} end
local own = KEYS[1]
local names, records = beside(own, 'names'), beside(own, 'operations')
local needed = {
  {'HMGET', own, 'a'}, {'HSET', own, 'a', 'b'}, {'HDEL', own, 'a'}, {'HLEN', own}, {'EXISTS', own}, {'PERSIST', own},
  {'ZADD', names, 0, 'a'}, {'ZREM', names, 'a'}, {'ZCARD', names}, {'ZSCORE', names, 'a'},
  {'ZRANGEBYLEX', names, '-', '+'}, {'HMGET', records, 'a'}, {'HSET', records, 'a', 'b'}, {'INFO', 'replication'}, {'TIME'},
}
for _, command in ipairs(needed) do
  if not redis.acl_check_cmd(unpack(command)) then
    return {'unread', 'NOPERM ' .. command[1] .. ' ' .. (command[2] or '')}
  end
end
return {'ok'}
