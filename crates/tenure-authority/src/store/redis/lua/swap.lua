-- Makes changes, each judged alone. They are judged in memory, one after the other, and whatever they stand on is read
-- before anything is written, by reads that would also find a key that is gone or of another type. Few calls for many
-- changes, and few steps for each: that is what a script's time goes into.
--
-- ARGV after the fields: for each change its kind, field, expected version, the session that it relies on, the version of
-- the store's record, the deadline before which it is made, a row of the history, a grant; then
--   A, the store's record: the record, its incarnation, its identity;
--   S, a session: the record, its state, when it ends, the same in microseconds, and for a renewal its ttl and the rest in
--     nanoseconds;
--   L, a resource: the record, what its grant is in the fingerprint, its session;
--   s, l: a session or a resource that goes: nothing.
-- The answer has the newest version and the number of rows before, and for each change nothing when it was refused, or the
-- fingerprint of a renewed session: each that was made has the next version.
local argv, match, sub, call = ARGV, string.match, string.sub, redis.call
-- What a resource's grant is in the fingerprint of its session while none stands.
local nothing = string.rep('\0', 20)
local version, incarnation, at_record = m[4], m[5], m[2]
local incarnation_before, record_after = incarnation, nil
-- Versions also stay ahead of the time, so that none comes back after a failover that lost the last ones.
local newest_before = math.max(tonumber(m[6]), now)
local newest = newest_before
local rows = call('LLEN', p .. 'history') - 1
if rows < 0 then return {'lost', ''} end

-- What stands in each field, and after a change what is to stand there; `false` when nothing does.
local values = {}
for at = 1, count do values[argv[3 + at]] = m[6 + at] end
local function value_of(field)
  local value = values[field]
  -- Nobody could foresee that it is needed: the session whose grant is overtaken.
  if value == nil then
    value = call('HGET', own, field)
    values[field] = value
  end
  return value
end

-- The state of sessions, and of those that change what it was.
local states, before, scores = {}, {}, {}
local function state_of(session)
  local state = states[session]
  if state == nil then
    local value = value_of(session)
    state = value and match(value, '^%S+ (%S+)') or false
    states[session] = state
  end
  return state
end

-- Fingerprints that change. A session's is empty while nothing stands on it, and is reckoned with as five numbers: of its
-- twenty bytes none is above 127, so that it is text.
local prints, pieces = {}, '>I4I4I4I4I4'
local function toggle(session, mark)
  local one = prints[session] or value_of('f:' .. session) or ''
  if one == '' then
    prints[session] = mark
  elseif one == mark then
    prints[session] = ''
  else
    if type(one) == 'string' then
      one = {struct.unpack(pieces, one)}
      prints[session] = one
    end
    local xor, a, b, c, d, e = bit.bxor, struct.unpack(pieces, mark)
    one[1], one[2], one[3], one[4], one[5] = xor(one[1], a), xor(one[2], b), xor(one[3], c), xor(one[4], d), xor(one[5], e)
  end
end
local function print_of(session)
  local one = prints[session] or value_of('f:' .. session) or ''
  if type(one) == 'string' then return one end
  one = struct.pack(pieces, one[1], one[2], one[3], one[4], one[5])
  return one == nothing and '' or one
end

-- What is put into the lists of names and of what is held (`true`), or goes (`false`).
local names, held = {}, {}
local changed, new_rows, new_grants, told = {}, {}, {}, {}

local function judge(at)
  local kind, field, expected, relies_on, remembered, before_deadline, row, grant, record, state, when, score, ttl, rest =
    unpack(argv, at, at + 13)
  if at_record ~= identity and kind ~= 'A' then return false end
  if remembered ~= '' and remembered ~= version then return false end
  if before_deadline ~= '' and now >= tonumber(before_deadline) then return false end
  if relies_on ~= '' and state_of(relies_on) ~= incarnation then return false end
  local found, print, value = version, '', kind ~= 'A' and value_of(field)
  local is_lease = kind == 'L' or kind == 'l'
  if value then found = match(value, '^%S+', is_lease and 54 or 1) elseif kind ~= 'A' then found = '' end
  if found ~= expected then return false end

  newest = newest + 1
  local fresh = text(newest)
  if kind == 'A' then
    record_after, version, incarnation, at_record = record, fresh, state, when
    told[#told + 1] = '*'
  elseif is_lease then
    local name, stood, mark = sub(field, 3), value and sub(value, 1, 32), value and sub(value, 34, 53)
    local stands = kind == 'L' and state ~= nothing and when
    if mark == nothing then stood = false end
    if stood ~= stands or mark ~= state then
      if stood then toggle(stood, mark) end
      if stands then toggle(stands, state) end
    end
    if stood ~= stands then
      if stood then held[stood .. ' ' .. name] = false end
      if stands then held[stands .. ' ' .. name] = true end
    end
    if kind == 'L' then
      if not value then names[name] = true end
      values[field] = when .. ' ' .. state .. fresh .. ' ' .. record
    else
      if value then names[name] = false end
      values[field] = false
    end
    if row ~= '' then told[#told + 1] = (stands and 't' or 'f') .. name end
  else
    local was = state_of(field)
    local is_renewal = kind == 'S' and ttl ~= ''
    if is_renewal then
      -- From now on for a whole ttl, which is given in microseconds and a rest of nanoseconds.
      when = text(now + tonumber(ttl)) .. rest
      print = print_of(sub(field, 3))
    end
    -- A renewal leaves the list of the living as it is: `idle.lua` puts it right.
    if before[field] == nil and not (is_renewal and was == state) then before[field] = was end
    if kind == 's' then
      values[field], states[field] = false, false
    else
      values[field], states[field], scores[field] = fresh .. ' ' .. state .. ' ' .. when .. ' ' .. record, state, score
    end
    if kind == 's' or state == '-' then
      local id = sub(field, 3)
      local stand = call('ZRANGEBYLEX', p .. 'held', '[' .. id .. ' ', '(' .. id .. '!', 'LIMIT', 0, 101)
      for n = 1, math.min(#stand, 100) do
        if held[stand[n]] == nil then told[#told + 1] = 'f' .. sub(stand[n], 34) end
      end
      -- What was granted by this batch is in no list yet, and what it took away still is.
      for member, is_put in pairs(held) do
        if is_put and sub(member, 1, 32) == id then told[#told + 1] = 'f' .. sub(member, 34) end
      end
      if #stand > 100 then told[#told + 1] = '*' end
    end
  end
  if field ~= '' then changed[field] = true end
  if row ~= '' then new_rows[#new_rows + 1] = row end
  if grant ~= '' then new_grants[#new_grants + 1] = grant end
  return print
end

local clock = text(now)
local answer, size = {'ok', clock, identity, text(newest_before), rows}, {A = 11, S = 14, L = 11, s = 8, l = 8}
local at, place = 4 + count, 5
while argv[at] do
  place = place + 1
  answer[place] = judge(at)
  at = at + size[argv[at]]
end
if newest == newest_before then return answer end

-- What is written: a call for each command and key. None removes what another one adds.
local adds, drops = {}, {}
local function add(list, score, member)
  local to = adds[list] or {}
  adds[list], to[#to + 1], to[#to + 2] = to, score, member
end
local function drop(list, member)
  local from = drops[list] or {}
  drops[list], from[#from + 1] = from, member
end
-- In which list a session stands.
local function list(state)
  if not state then return nil end
  if state == '-' then return 'ended' end
  return state == incarnation and 'live' or 'former'
end
for session, was in pairs(before) do
  local from, to, id = list(was), list(states[session]), sub(session, 3)
  if to then add(to, scores[session], id) end
  if from and from ~= to then drop(from, id) end
end
for name, is_put in pairs(names) do
  if is_put then add('names', 0, name) else drop('names', name) end
end
for member, is_put in pairs(held) do
  if is_put then add('held', 0, member) else drop('held', member) end
end
local put, gone, n = {}, {}, 0
for field in pairs(changed) do
  local value = values[field]
  if value then put[n + 1], put[n + 2], n = field, value, n + 2 else gone[#gone + 1] = field end
end
-- An empty fingerprint stays as long as its session does: another command for each grant and release costs more.
for session in pairs(prints) do
  local field, value = 'f:' .. session, print_of(session)
  if value ~= '' or value_of('s:' .. session) then
    put[n + 1], put[n + 2], n = field, value, n + 2
  else
    gone[#gone + 1] = field
  end
end
for session in pairs(before) do
  local id = sub(session, 3)
  if not states[session] and not prints[id] and value_of('f:' .. id) == '' then gone[#gone + 1] = 'f:' .. id end
end
for at = 1, #new_grants do put[n + 1], put[n + 2], n = new_grants[at], '', n + 2 end
if record_after then
  put[n + 1], put[n + 2], put[n + 3], put[n + 4] = 'record', record_after, 'version', version
  put[n + 5], put[n + 6], put[n + 7], put[n + 8] = 'incarnation', incarnation, 'identity', at_record
end

-- The last look before the first writing: a list that is gone or of another type.
for key in pairs(adds) do if call('ZCARD', p .. key) == 0 then return {'lost', ''} end end
for key in pairs(drops) do if call('ZCARD', p .. key) == 0 then return {'lost', ''} end end
if record_after and call('ZCARD', p .. 'live') * call('ZCARD', p .. 'former') == 0 then return {'lost', ''} end

-- Told before it is written: nobody sees anything of this before its end, and only telling may be forbidden. Names have
-- no control characters.
if #told > 0 then call('PUBLISH', p .. 'changes', table.concat(told, '\n')) end
call('HSET', own, 'newest', text(newest), 'clock', clock, unpack(put))
if #gone > 0 then call('HDEL', own, unpack(gone)) end
if incarnation ~= incarnation_before then
  call('ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live')
  call('ZREMRANGEBYSCORE', p .. 'live', '-inf', '(inf')
end
for key, members in pairs(drops) do call('ZREM', p .. key, unpack(members)) end
for key, members in pairs(adds) do call('ZADD', p .. key, unpack(members)) end
if #new_rows > 0 then call('RPUSH', p .. 'history', unpack(new_rows)) end
return answer
