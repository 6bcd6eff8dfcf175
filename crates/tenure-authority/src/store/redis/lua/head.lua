-- How every script begins: who is asked, which store is there, what time is it.
-- KEYS[1] all records; ARGV[1], ARGV[2] the identity of the last answer and its clock in microseconds; ARGV[3] how many of
-- the records are read with the store's own fields, ARGV[4] and so on which: one call for all of them.
-- Numbers of 64 bits are text here: Lua would round them. Microseconds are exact until 2255.
local own = KEYS[1]
local p = string.sub(own, 1, -6)
local info = redis.pcall('INFO', 'replication')
if type(info) ~= 'string' then return {'denied', info.err} end
if not string.find(info, 'role:master', 1, true) then return {'replica'} end
local _, before = string.find(info, 'master_replid:', 1, true)
local replid = before and string.sub(info, before + 1, before + 40) or ''
if #replid < 40 or string.find(replid, '%X') then return {'nameless', ''} end
local identity = 'redis:' .. replid
local count = tonumber(ARGV[3])
local m = redis.pcall('HMGET', own, 'schema', 'identity', 'clock', 'version', 'incarnation', 'newest',
  unpack(ARGV, 4, 3 + count))
if m.err then
  if string.find(m.err, 'WRONGTYPE', 1, true) then return {'foreign'} end
  return {'denied', m.err}
end
if not m[1] then
  if redis.call('EXISTS', own) == 1 then return {'foreign'} end
  return {'missing', identity}
end
if m[1] ~= '1' then return {'schema', m[1]} end
-- A whole number, exactly; `%.0f` takes four times as long.
local function text(number)
  return string.format('%d%09d', math.floor(number / 1000000000), number % 1000000000)
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local is_own = identity == m[2]
-- Readings of another server's clock say nothing.
local floor = 0
if is_own then floor = tonumber(m[3]) end
if identity == ARGV[1] then floor = math.max(floor, tonumber(ARGV[2])) end
if floor - now > 1000000 then return {'back', text(floor - now)} end
now = math.max(now, floor)
