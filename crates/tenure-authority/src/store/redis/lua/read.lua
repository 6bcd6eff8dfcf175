-- Reads what a request needs. ARGV[3..5]: a session, a resource, a grant; empty when none is asked for.
local function session(id)
  return redis.call('HGET', p .. 'sessions', id)
end
local caller, holdings, lease, holder, known = false, false, false, false, 1
if ARGV[3] ~= '' then
  caller = session(ARGV[3])
  holdings = redis.call('HGET', p .. 'holdings', ARGV[3])
end
if ARGV[4] ~= '' then
  lease = redis.call('HGET', p .. 'leases', ARGV[4])
  local id = lease and string.match(lease, '^%S+ (%S+)')
  if id == ARGV[3] then holder = caller elseif id then holder = session(id) end
end
if ARGV[5] ~= '' then known = redis.call('SISMEMBER', p .. 'grants', ARGV[5]) end
return {'ok', text(now), identity, redis.call('HGET', own, 'record'), m[4], redis.call('LLEN', p .. 'history') - 1,
  caller, holdings, lease, holder, known}
