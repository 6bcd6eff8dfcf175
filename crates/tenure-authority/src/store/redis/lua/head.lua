-- How every script begins: who is asked, which store is there, what time is it.
-- KEYS[1] the store's own record; ARGV[1], ARGV[2] the identity of the last answer and its clock in microseconds.
-- Numbers of 64 bits are text here: Lua would round them. Microseconds are exact until 2255.
local own = KEYS[1]
local p = string.sub(own, 1, -6)
local info = redis.pcall('INFO', 'replication')
if type(info) ~= 'string' then return {'denied', info.err} end
if not string.find(info, 'role:master', 1, true) then return {'replica'} end
local replid = string.match(info, 'master_replid:(%x+)')
if not replid or #replid ~= 40 then return {'nameless', ''} end
local identity = 'redis:' .. replid
local m = redis.pcall('HMGET', own, 'schema', 'identity', 'clock', 'version', 'incarnation', 'newest', 'record')
if m.err then
  if string.find(m.err, 'WRONGTYPE', 1, true) then return {'foreign'} end
  return {'denied', m.err}
end
if not m[1] then
  if redis.call('EXISTS', own) == 1 then return {'foreign'} end
  return {'missing', identity}
end
if m[1] ~= '1' then return {'schema', m[1]} end
-- Each key has a mark, so that none is ever absent while the store is whole.
if redis.call('EXISTS', p .. 'sessions', p .. 'leases', p .. 'names', p .. 'holdings', p .. 'live', p .. 'former',
  p .. 'ended', p .. 'history', p .. 'grants') < 9 then return {'lost', ''} end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local is_own = identity == m[2]
-- Readings of another server's clock say nothing.
local floor = 0
if is_own then floor = tonumber(m[3]) end
if identity == ARGV[1] then floor = math.max(floor, tonumber(ARGV[2])) end
if floor - now > 1000000 then return {'back', string.format('%.0f', floor - now)} end
now = math.max(now, floor)
