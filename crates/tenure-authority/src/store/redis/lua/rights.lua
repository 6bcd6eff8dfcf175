-- Whether the user may do all that the scripts do: a right that is missing half-way would leave half a change.
local own = KEYS[1]
local p = string.sub(own, 1, -6)
if not redis.acl_check_cmd then return {'ok'} end
local needed = {
  {'HMGET', own, 'a'}, {'HGET', own, 'a'}, {'HSET', own, 'a', 'b'}, {'HDEL', own, 'a'}, {'EXISTS', own},
  {'ZADD', p .. 'live', 0, 'a'}, {'ZREM', p .. 'live', 'a'}, {'ZCARD', p .. 'live'},
  {'ZRANGEBYLEX', p .. 'names', '-', '+'}, {'ZRANGEBYSCORE', p .. 'live', 0, 1},
  {'ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live'}, {'DEL', p .. 'names'},
  {'ZREMRANGEBYSCORE', p .. 'live', 0, 1}, {'RPUSH', p .. 'history', 'a'},
  {'LRANGE', p .. 'history', 0, 1}, {'LLEN', p .. 'history'}, {'PUBLISH', p .. 'changes', 'a'}, {'TIME'}, {'INFO', 'replication'},
}
for _, command in ipairs(needed) do
  if not redis.acl_check_cmd(unpack(command)) then
    return {'denied', 'NOPERM ' .. command[1] .. ' ' .. (command[2] or '')}
  end
end
return {'ok'}
