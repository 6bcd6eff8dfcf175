-- Behind this comes the caller's script, as the function `body`. It sees the keys and arguments that are its own, and a
-- `redis` that notes whether it may have written: a command that failed has not, and one that only reads has not.
local reads = {}
for name in string.gmatch('BITCOUNT BITPOS DBSIZE DUMP ECHO EXISTS EXPIRETIME GEODIST GEOHASH GEOPOS GEOSEARCH GET '
  .. 'GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN HVALS INFO KEYS LCS LINDEX LLEN '
  .. 'LPOS LRANGE MGET PEXPIRETIME PFCOUNT PING PTTL RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS '
  .. 'SMISMEMBER SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TIME TTL TYPE XINFO XLEN XPENDING XRANGE XREVRANGE ZCARD ZCOUNT '
  .. 'ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE '
  .. 'ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION', '%a+') do reads[name] = true end
local has_written = false
local function noting(call)
  return function(name, ...)
    local said = call(name, ...)
    if not reads[string.upper(name)] and not (type(said) == 'table' and said.err) then has_written = true end
    return said
  end
end
local server = redis
local noted = setmetatable({call = noting(server.call), pcall = noting(server.pcall)}, {__index = server})
return apply(function()
  local keys, argv = {unpack(KEYS, 2)}, {unpack(ARGV, 8)}
  local is_done, said = pcall(body, noted, keys, argv)
  if type(said) == 'table' and said.err then is_done, said = false, said.err end
  if not is_done then return type(said) == 'string' and said or 'it raised no text', nil, has_written end
  if type(said) == 'table' then said = said.ok end
  return nil, (type(said) == 'string' or type(said) == 'number') and tostring(said) or nil
end)
