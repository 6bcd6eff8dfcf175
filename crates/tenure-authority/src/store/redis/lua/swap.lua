-- Makes changes, each judged alone: fifteen arguments each, named in `judge`. First everything is read that they stand
-- on, by reads that would also find a key that is gone or of another type; then they are judged in memory, one after the
-- other; then all is written. Few calls for many changes: calls are what a script's time goes into.
local first, step = 3, 15
local argv, match, sub = ARGV, string.match, string.sub
local version, incarnation, at_record = m[4], m[5], m[2]
local incarnation_before, record_after = incarnation, nil
-- Versions also stay ahead of the time, so that none comes back after a failover that lost the last ones.
local newest_before = math.max(tonumber(m[6]), now)
local newest = newest_before

-- Names, in the order in which they were asked for; and under each name what is known of it.
local sessions, leases, holdings, held = {}, {}, {}, {}
local has_session, has_lease, has_grant, is_whole = false, false, false, true

local function want(list, name)
  local one = list[name]
  if not one then
    one = {}
    list[name] = one
    list[#list + 1] = name
  end
  return one
end

-- All in one call, and the key's mark.
local function fetch(list, key)
  if #list == 0 then return end
  local values = redis.call('HMGET', p .. key, '', unpack(list))
  is_whole = is_whole and values[1]
  for at, name in ipairs(list) do list[name].value = values[at + 1] end
end

for at = first, #argv, step do
  local kind, id, relies_on, state = argv[at], argv[at + 1], argv[at + 3], argv[at + 7]
  if relies_on ~= '' then want(sessions, relies_on) end
  if kind == 'S' or kind == 's' then
    has_session = true
    want(sessions, id)
    if argv[at + 10] ~= '' then want(holdings, id) end
    if kind == 's' or state == '-' then held[id] = redis.call('ZRANGE', p .. 'held:' .. id, 0, 100) end
  elseif kind ~= 'A' then
    has_lease = true
    want(leases, id)
    if kind == 'L' and state ~= '-' then want(holdings, argv[at + 8]).is_stood_on = true end
  end
  if argv[at + 13] ~= '' then has_grant = true end
end
fetch(sessions, 'sessions')
for _, id in ipairs(sessions) do
  local one = sessions[id]
  if one.value then one.version, one.state = match(one.value, '^(%S+) (%S+)') end
  one.before = one.state
end
fetch(leases, 'leases')
for _, name in ipairs(leases) do
  local one = leases[name]
  if one.value then
    one.is_old = true
    one.version, one.stands, one.mixed = match(one.value, '^(%S+) (%S+) (%S+)')
    if one.mixed == '-' then one.stands = nil end
    one.stood = one.stands
    if one.stood then want(holdings, one.stood).is_stood_on = true end
  end
end
fetch(holdings, 'holdings')
-- Such a list is there only while something stands on its session.
for _, id in ipairs(holdings) do
  if holdings[id].is_stood_on then redis.call('ZCARD', p .. 'held:' .. id) end
end
local rows = redis.call('LLEN', p .. 'history') - 1
if not is_whole or rows < 0
  or has_lease and redis.call('ZCARD', p .. 'names') == 0
  or has_grant and redis.call('SCARD', p .. 'grants') == 0
  or has_session and (redis.call('ZCARD', p .. 'live') == 0 or redis.call('ZCARD', p .. 'former') == 0
    or redis.call('ZCARD', p .. 'ended') == 0) then
  return {'lost', ''}
end

local new_rows, new_grants, told = {}, {}, {}

-- Fingerprints are four pieces of 32 bits each.
local function toggle(session, mixed)
  local one = holdings[session]
  local value = not one.is_toggled and one.value
  one.is_toggled = true
  for piece = 1, 4 do
    local from, to = 8 * piece - 7, 8 * piece
    local before = value and tonumber(sub(value, from, to), 16) or one[piece] or 0
    one[piece] = bit.bxor(before, tonumber(sub(mixed, from, to), 16))
  end
end

-- Empty when nothing stands on the session.
local function fingerprint(one)
  if not one.is_toggled then return one.value or '' end
  if one[1] == 0 and one[2] == 0 and one[3] == 0 and one[4] == 0 then return '' end
  return bit.tohex(one[1]) .. bit.tohex(one[2]) .. bit.tohex(one[3]) .. bit.tohex(one[4])
end

local function judge(at)
  local kind, id, expected, relies_on, remembered, before_deadline, record, state, when, score, ttl, rest, row, grant,
    tells = unpack(argv, at, at + step - 1)
  if at_record ~= identity and kind ~= 'A' then return '' end
  if remembered ~= '' and remembered ~= version then return '' end
  if before_deadline ~= '' and now >= tonumber(before_deadline) then return '' end
  if relies_on ~= '' and sessions[relies_on].state ~= incarnation then return '' end
  local is_session = kind == 'S' or kind == 's'
  local one = is_session and sessions[id] or leases[id]
  local found = version
  if kind ~= 'A' then found = one.version or '' end
  if found ~= expected then return '' end

  newest = newest + 1
  local fresh = text(newest)
  if kind == 'A' then
    record_after, version, incarnation, at_record = record, fresh, state, when
  elseif kind == 'S' then
    if ttl ~= '' then
      -- A renewal: from now on for a whole ttl, which is given in microseconds and a rest of nanoseconds.
      local deadline = now + tonumber(ttl)
      when = text(deadline) .. rest
      score = rest == '000' and sub(when, 1, -4) or text(deadline + 1)
    end
    one.value, one.version, one.state = fresh .. ' ' .. state .. ' ' .. when .. ' ' .. record, fresh, state
    one.is_put, one.score = true, score
  elseif kind == 's' then
    one.value, one.version, one.state, one.is_put = false, nil, nil, true
  else
    local stands = kind == 'L' and state ~= '-' and when or nil
    if one.stands ~= stands or one.mixed ~= state then
      if one.stands then toggle(one.stands, one.mixed) end
      if stands then toggle(stands, state) end
    end
    one.value, one.version, one.mixed, one.stands, one.is_put = false, nil, nil, stands, true
    if kind == 'L' then
      one.value, one.version, one.mixed = fresh .. ' ' .. when .. ' ' .. state .. ' ' .. record, fresh, state
    end
  end
  if kind == 's' or kind == 'S' and state == '-' then
    for _, name in ipairs(held[id]) do told[#told + 1] = 'f' .. name end
    if #held[id] > 100 then told[#told + 1] = '*' end
  end
  if row ~= '' then
    rows = rows + 1
    new_rows[#new_rows + 1] = row
  end
  if grant ~= '' then new_grants[#new_grants + 1] = grant end
  if tells ~= '' then told[#told + 1] = tells end
  return fresh .. ' ' .. rows .. ' ' .. (ttl ~= '' and fingerprint(holdings[id]) or '')
end

local clock = text(now)
local answer = {'ok', clock, identity}
for at = first, #argv, step do answer[#answer + 1] = judge(at) end
if newest == newest_before then return answer end

-- Told before it is written: nobody sees anything of this before its end, and only telling may be forbidden. Names have
-- no control characters.
if #told > 0 then redis.call('PUBLISH', p .. 'changes', table.concat(told, '\n')) end
redis.call('HSET', own, 'newest', text(newest), 'clock', clock)
if record_after then
  redis.call('HSET', own, 'record', record_after, 'version', version, 'incarnation', incarnation, 'identity', at_record)
end
if incarnation ~= incarnation_before then
  redis.call('ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live')
  redis.call('ZREMRANGEBYSCORE', p .. 'live', '-inf', '(inf')
end

-- What is written: a call for each command and key. None removes what another one adds, so their order does not matter.
local calls = {}
local function gather(command, key, a, b)
  local call = calls[command .. key]
  if not call then
    call = {command, p .. key}
    calls[command .. key] = call
  end
  call[#call + 1] = a
  call[#call + 1] = b
end

-- In which list a session stands.
local function list(state)
  if not state then return nil end
  if state == '-' then return 'ended' end
  return state == incarnation and 'live' or 'former'
end

for _, id in ipairs(sessions) do
  local one = sessions[id]
  if one.is_put then
    local before, after = list(one.before), list(one.state)
    if one.value then
      gather('HSET', 'sessions', id, one.value)
      gather('ZADD', after, one.score, id)
    else
      gather('HDEL', 'sessions', id)
    end
    if before and before ~= after then gather('ZREM', before, id) end
  end
end
for _, name in ipairs(leases) do
  local one = leases[name]
  if one.value and one.is_put then
    gather('HSET', 'leases', name, one.value)
    if not one.is_old then gather('ZADD', 'names', 0, name) end
  elseif one.is_put and one.is_old then
    gather('HDEL', 'leases', name)
    gather('ZREM', 'names', name)
  end
  if one.stood ~= one.stands then
    if one.stood then gather('ZREM', 'held:' .. one.stood, name) end
    if one.stands then gather('ZADD', 'held:' .. one.stands, 0, name) end
  end
end
for _, id in ipairs(holdings) do
  local one = holdings[id]
  if one.is_toggled then
    local value = fingerprint(one)
    if value ~= '' then gather('HSET', 'holdings', id, value) else gather('HDEL', 'holdings', id) end
  end
end
for _, call in pairs(calls) do redis.call(unpack(call)) end
if #new_rows > 0 then redis.call('RPUSH', p .. 'history', unpack(new_rows)) end
if #new_grants > 0 then redis.call('SADD', p .. 'grants', unpack(new_grants)) end
return answer
