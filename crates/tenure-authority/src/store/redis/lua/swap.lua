-- Makes changes, each judged alone: fifteen arguments each, named in `judge`. First everything is read that they stand
-- on, by reads that would also find a key that is gone or of another type; then they are judged in memory, one after the
-- other; then all is written. Few calls for many changes: calls are what a script's time goes into.
local first, step = 3, 15
local argv, match, sub, call = ARGV, string.match, string.sub, redis.call
local version, incarnation, at_record = m[4], m[5], m[2]
local incarnation_before, record_after = incarnation, nil
-- Versions also stay ahead of the time, so that none comes back after a failover that lost the last ones.
local newest_before = math.max(tonumber(m[6]), now)
local newest = newest_before

-- Names, in the order in which they were asked for; and under each name what is known of it.
local sessions, leases, holdings, held = {}, {}, {}, {}
-- The lists in which something is put or removed.
local touched = {}

local function want_session(id)
  if sessions[id] then return sessions[id] end
  sessions[id] = {value = false, version = false, state = false, before = false, score = false, is_asked = false,
    is_put = false}
  sessions[#sessions + 1] = id
  return sessions[id]
end

local function want_holdings(id)
  local one = holdings[id]
  if not one then
    one = {0, 0, 0, 0, value = false, is_stood_on = false, is_toggled = false}
    holdings[id] = one
    holdings[#holdings + 1] = id
  end
  return one
end

-- All in one call, and the key's mark. Whether that is there.
local function fetch(list, key)
  if #list == 0 then return true end
  local values = call('HMGET', p .. key, '', unpack(list))
  for at = 1, #list do list[list[at]].value = values[at + 1] end
  return values[1]
end

-- In which list a session stands.
local function list(state)
  if not state then return nil end
  if state == '-' then return 'ended' end
  return state == incarnation and 'live' or 'former'
end

for at = first, #argv, step do
  local kind, id, relies_on, state = argv[at], argv[at + 1], argv[at + 3], argv[at + 7]
  if relies_on ~= '' then want_session(relies_on) end
  if kind == 'S' or kind == 's' then
    want_session(id).is_asked = true
    if kind == 'S' then touched[list(state)] = true end
    if argv[at + 10] ~= '' then want_holdings(id) end
    if kind == 's' or state == '-' then held[id] = call('ZRANGE', p .. 'held:' .. id, 0, 100) end
  elseif kind == 'A' then
    touched.live, touched.former = true, true
  else
    if not leases[id] then
      leases[id] = {value = false, version = false, stands = false, mixed = false, stood = false, is_old = false,
        is_put = false}
      leases[#leases + 1] = id
    end
    if kind == 'l' then touched.names = true end
    if kind == 'L' and state ~= '-' then want_holdings(argv[at + 8]).is_stood_on = true end
  end
  if argv[at + 13] ~= '' then touched.grants = true end
end
local is_whole = fetch(sessions, 'sessions')
for at = 1, #sessions do
  local one = sessions[sessions[at]]
  if one.value then
    one.version, one.state = match(one.value, '^(%S+) (%S+)')
    one.before = one.state
    if one.is_asked and one.state then touched[list(one.state)] = true end
  end
end
is_whole = fetch(leases, 'leases') and is_whole
for at = 1, #leases do
  local one = leases[leases[at]]
  if one.value then
    one.is_old = true
    one.version, one.stands, one.mixed = match(one.value, '^(%S+) (%S+) (%S+)')
    if one.mixed == '-' then one.stands = false end
    one.stood = one.stands
    if one.stood then want_holdings(one.stood).is_stood_on = true end
  else
    touched.names = true
  end
end
is_whole = fetch(holdings, 'holdings') and is_whole
-- Such a list is there only while something stands on its session.
for at = 1, #holdings do
  if holdings[holdings[at]].is_stood_on then call('ZCARD', p .. 'held:' .. holdings[at]) end
end
local rows = call('LLEN', p .. 'history') - 1
for key in pairs(touched) do
  if call(key == 'grants' and 'SCARD' or 'ZCARD', p .. key) == 0 then is_whole = false end
end
if not is_whole or rows < 0 then return {'lost', ''} end

local new_rows, new_grants, told = {}, {}, {}

-- Fingerprints are four pieces of 32 bits each.
local function toggle(session, mixed)
  local one = holdings[session]
  if not one.is_toggled then
    one.is_toggled = true
    if one.value then toggle(session, one.value) end
  end
  for piece = 1, 4 do
    one[piece] = bit.bxor(one[piece], tonumber(sub(mixed, 8 * piece - 7, 8 * piece), 16))
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
  if one then found = one.version or '' elseif kind ~= 'A' then found = '' end
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
    one.value, one.version, one.state, one.is_put = false, false, false, true
  else
    local stands = kind == 'L' and state ~= '-' and when
    if one.stands ~= stands or one.mixed ~= state then
      if one.stands then toggle(one.stands, one.mixed) end
      if stands then toggle(stands, state) end
    end
    one.value, one.version, one.mixed, one.stands, one.is_put = false, false, false, stands, true
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
for at = first, #argv, step do answer[3 + (at - first) / step + 1] = judge(at) end
if newest == newest_before then return answer end

-- Told before it is written: nobody sees anything of this before its end, and only telling may be forbidden. Names have
-- no control characters.
if #told > 0 then call('PUBLISH', p .. 'changes', table.concat(told, '\n')) end
call('HSET', own, 'newest', text(newest), 'clock', clock)
if record_after then
  call('HSET', own, 'record', record_after, 'version', version, 'incarnation', incarnation, 'identity', at_record)
end
if incarnation ~= incarnation_before then
  call('ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live')
  call('ZREMRANGEBYSCORE', p .. 'live', '-inf', '(inf')
end

-- What is written: a call for each command and key. None removes what another one adds, so their order does not matter.
local calls = {}
local function gather(command, key, a, b)
  local gathered = calls[command .. key]
  if not gathered then
    gathered = {command, p .. key}
    calls[command .. key] = gathered
  end
  gathered[#gathered + 1] = a
  gathered[#gathered + 1] = b
end

for at = 1, #sessions do
  local id = sessions[at]
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
local put, n = {'HSET', p .. 'leases'}, 2
for at = 1, #leases do
  local name = leases[at]
  local one = leases[name]
  if one.value and one.is_put then
    put[n + 1], put[n + 2], n = name, one.value, n + 2
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
for at = 1, #holdings do
  local id = holdings[at]
  if holdings[id].is_toggled then
    local value = fingerprint(holdings[id])
    if value ~= '' then gather('HSET', 'holdings', id, value) else gather('HDEL', 'holdings', id) end
  end
end
if n > 2 then call(unpack(put)) end
for _, gathered in pairs(calls) do call(unpack(gathered)) end
if #new_rows > 0 then call('RPUSH', p .. 'history', unpack(new_rows)) end
if #new_grants > 0 then call('SADD', p .. 'grants', unpack(new_grants)) end
return answer
