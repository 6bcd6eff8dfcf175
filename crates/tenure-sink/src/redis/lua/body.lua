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
local function noting(call, refuse)
  return function(name, ...)
    local why = misplaced(name)
    if why then return refuse(why) end
    local said = call(name, ...)
    if not reads[string.upper(name)] and not (type(said) == 'table' and said.err) then has_written = true end
    return said
  end
end
local server = redis
local function raise(why) error(why, 0) end
local noted = {call = noting(server.call, raise), pcall = noting(server.pcall, server.error_reply)}
setmetatable(noted, {__index = server})
-- As Redis itself would say it, where that is a whole number; Lua would round it to fourteen digits.
local function text_of(said)
  if type(said) == 'string' then return said end
  if type(said) ~= 'number' then return nil end
  -- From here on Redis has no whole numbers. None is below zero by its sign alone.
  if said == math.floor(said) and math.abs(said) < 2 ^ 63 then return string.format('%.0f', said + 0) end
  local short = tostring(said)
  return tonumber(short) == said and short or string.format('%.17g', said)
end
return apply(function()
  local keys, argv = {unpack(KEYS, 2)}, {unpack(ARGV, 8)}
  local is_done, said = pcall(body, noted, keys, argv)
  if type(said) == 'table' and said.err then is_done, said = false, said.err end
  if not is_done then return type(said) == 'string' and said or 'it raised no text', nil, has_written end
  if type(said) == 'table' then said = said.ok end
  return nil, text_of(said)
end)
