-- Reads what a request needs. ARGV[4..8]: the fields of the store's record, a session, its fingerprint, a resource and a
-- grant; empty where none is asked for, and no field has that name.
local record, caller, holdings, lease, known = m[7], m[8], m[9], m[10], m[11]
local id = lease and 's:' .. string.sub(lease, 1, 32)
local holder = false
if id == ARGV[5] then holder = caller elseif id then holder = redis.call('HGET', own, id) end
return {'ok', text(now), identity, record, m[4], redis.call('LLEN', p .. 'history') - 1, caller, holdings, lease, holder,
  known or ARGV[8] == ''}
