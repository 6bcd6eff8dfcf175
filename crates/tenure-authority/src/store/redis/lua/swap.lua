-- Makes changes, each judged alone: fifteen arguments each, named in `judge`. First everything is read that they stand
-- on, by reads that would also find a key of another type; then they are judged in memory, one after the other; then all
-- is written, and nothing of that can fail. Few calls for many changes: calls are what a script's time goes into.
local first, step = 3, 15
local version, incarnation, at_record = m[4], m[5], m[2]
-- Versions also stay ahead of the time, so that none comes back after a failover that lost the last ones.
local newest = math.max(tonumber(m[6]), now)
local incarnation_before = incarnation

-- A set that is read in one call, by the names that were added.
local function reading(key)
  local names, is_added = {}, {}
  local function add(name)
    if name ~= '' and not is_added[name] then
      is_added[name] = true
      names[#names + 1] = name
    end
  end
  local function read()
    local found = {}
    if #names > 0 then
      local values = redis.call('HMGET', p .. key, unpack(names))
      for at, name in ipairs(names) do found[name] = values[at] end
    end
    return found
  end
  return add, read
end

local add_session, read_sessions = reading('sessions')
local add_lease, read_leases = reading('leases')
local add_holdings, read_holdings = reading('holdings')
local held, is_looked = {}, {}

local function look(command, key)
  if not is_looked[key] then
    is_looked[key] = true
    redis.call(command, p .. key)
  end
end

local sessions, leases, holdings, rows
local sessions_before, leases_before = {}, {}
local is_read, why = pcall(function()
  for at = first, #ARGV, step do
    local kind, id = ARGV[at], ARGV[at + 1]
    add_session(ARGV[at + 3])
    if kind == 'S' or kind == 's' then
      add_session(id)
      if ARGV[at + 10] ~= '' then add_holdings(id) end
      look('ZCARD', 'live')
      look('ZCARD', 'former')
      look('ZCARD', 'ended')
      if kind == 's' or ARGV[at + 7] == '-' then held[id] = redis.call('ZRANGE', p .. 'held:' .. id, 0, 100) end
    elseif kind ~= 'A' then
      add_lease(id)
      look('ZCARD', 'names')
      if ARGV[at + 7] ~= '-' and kind == 'L' then
        add_holdings(ARGV[at + 8])
        look('ZCARD', 'held:' .. ARGV[at + 8])
      end
    end
    if ARGV[at + 13] ~= '' then look('SCARD', 'grants') end
  end
  sessions, leases = read_sessions(), read_leases()
  for id, value in pairs(sessions) do sessions_before[id] = value and string.match(value, '^%S+ (%S+)') end
  for name, value in pairs(leases) do
    leases_before[name] = value
    local session, mixed = string.match(value or '', '^%S+ (%S+) (%S+)')
    if session and mixed ~= '-' then
      add_holdings(session)
      look('ZCARD', 'held:' .. session)
    end
  end
  holdings = read_holdings()
  rows = redis.call('LLEN', p .. 'history') - 1
end)
if not is_read then return {'denied', type(why) == 'table' and why.err or tostring(why)} end

local put, scores, moves, new_rows, new_grants, told = {}, {}, {}, {}, {}, {}
local record_after
local is_toggled = {}

-- The pieces are 32 bits each.
local function toggle(id, mixed)
  local before, after = holdings[id], mixed
  if before then
    after = ''
    for at = 1, 32, 8 do
      local a, b = tonumber(string.sub(before, at, at + 7), 16), tonumber(string.sub(mixed, at, at + 7), 16)
      after = after .. bit.tohex(bit.bxor(a, b))
    end
    if after == '00000000000000000000000000000000' then after = false end
  end
  holdings[id], is_toggled[id] = after, true
end

-- What stands on a session at the end.
local function move(session, name, stands)
  moves[session] = moves[session] or {}
  moves[session][name] = stands
end

local function judge(at)
  local kind, id, expected, relies_on, remembered = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local before_deadline, record, state, when, score =
    ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], ARGV[at + 8], ARGV[at + 9]
  local ttl, rest, row, grant, tells = ARGV[at + 10], ARGV[at + 11], ARGV[at + 12], ARGV[at + 13], ARGV[at + 14]
  if at_record ~= identity and kind ~= 'A' then return '' end
  if remembered ~= '' and remembered ~= version then return '' end
  if before_deadline ~= '' and now >= tonumber(before_deadline) then return '' end
  if relies_on ~= '' then
    local found = sessions[relies_on]
    if not found or string.match(found, '^%S+ (%S+)') ~= incarnation then return '' end
  end
  local value, found = nil, version
  if kind == 'S' or kind == 's' then
    value = sessions[id]
    found = value and string.match(value, '^%S+') or ''
  elseif kind ~= 'A' then
    value = leases[id]
    found = value and string.match(value, '^%S+') or ''
  end
  if found ~= expected then return '' end

  newest = newest + 1
  local fresh = string.format('%.0f', newest)
  if kind == 'A' then
    record_after, version, incarnation, at_record = record, fresh, state, when
  elseif kind == 'S' then
    if ttl ~= '' then
      -- A renewal: from now on for a whole ttl, which is given in microseconds and a rest of nanoseconds.
      local deadline = now + tonumber(ttl)
      when = string.format('%.0f', deadline) .. rest
      if rest ~= '000' then deadline = deadline + 1 end
      score = string.format('%.0f', deadline)
    end
    sessions[id] = fresh .. ' ' .. state .. ' ' .. when .. ' ' .. record
    scores[id] = score
  elseif kind == 's' then
    sessions[id], scores[id] = false, false
  else
    local session, mixed = string.match(value or '', '^%S+ (%S+) (%S+)')
    local stood, stands = mixed and mixed ~= '-', kind == 'L' and state ~= '-'
    leases[id] = kind == 'L' and fresh .. ' ' .. when .. ' ' .. state .. ' ' .. record
    put[id] = true
    if not (stood and stands and session == when and mixed == state) then
      if stood then
        toggle(session, mixed)
        move(session, id, false)
      end
      if stands then
        toggle(when, state)
        move(when, id, true)
      end
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
  return fresh .. ' ' .. rows .. ' ' .. (ttl ~= '' and holdings[id] or '')
end

local answer, newest_before = {'ok', string.format('%.0f', now), identity}, newest
for at = first, #ARGV, step do answer[#answer + 1] = judge(at) end
if newest == newest_before then return answer end

local function call(command, key, args)
  if #args > 0 then redis.call(command, p .. key, unpack(args)) end
end

-- Told before it is written: nobody sees anything of this before its end, and only telling may be forbidden. Names have
-- no control characters.
if #told > 0 then redis.call('PUBLISH', p .. 'changes', table.concat(told, '\n')) end
redis.call('HSET', own, 'newest', string.format('%.0f', newest), 'clock', string.format('%.0f', now))
if record_after then
  redis.call('HSET', own, 'record', record_after, 'version', version, 'incarnation', incarnation, 'identity', at_record)
end
if incarnation ~= incarnation_before then
  redis.call('ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live')
  redis.call('ZREMRANGEBYSCORE', p .. 'live', '-inf', '(inf')
end

-- In which list a session stands, by the second word of its value.
local function list(state)
  if not state then return false end
  if state == '-' then return 'ended' end
  return state == incarnation and 'live' or 'former'
end

local hset, hdel, zadd, zrem = {}, {}, {}, {}
for id, score in pairs(scores) do
  local value = sessions[id]
  local before, after = list(sessions_before[id]), list(value and string.match(value, '^%S+ (%S+)'))
  if value then
    hset[#hset + 1] = id
    hset[#hset + 1] = value
    zadd[after] = zadd[after] or {}
    table.insert(zadd[after], score)
    table.insert(zadd[after], id)
  else
    hdel[#hdel + 1] = id
  end
  if before and before ~= after then
    zrem[before] = zrem[before] or {}
    table.insert(zrem[before], id)
  end
end
call('HSET', 'sessions', hset)
call('HDEL', 'sessions', hdel)
for key, args in pairs(zadd) do call('ZADD', key, args) end
for key, args in pairs(zrem) do call('ZREM', key, args) end

hset, hdel, zadd, zrem = {}, {}, {}, {}
for name in pairs(put) do
  local value, before = leases[name], leases_before[name]
  if value then
    hset[#hset + 1] = name
    hset[#hset + 1] = value
    if not before then
      zadd[#zadd + 1] = 0
      zadd[#zadd + 1] = name
    end
  elseif before then
    hdel[#hdel + 1] = name
    zrem[#zrem + 1] = name
  end
end
call('HSET', 'leases', hset)
call('HDEL', 'leases', hdel)
call('ZADD', 'names', zadd)
call('ZREM', 'names', zrem)

for session, names in pairs(moves) do
  zadd, zrem = {}, {}
  for name, stands in pairs(names) do
    if stands then
      zadd[#zadd + 1] = 0
      zadd[#zadd + 1] = name
    else
      zrem[#zrem + 1] = name
    end
  end
  call('ZADD', 'held:' .. session, zadd)
  call('ZREM', 'held:' .. session, zrem)
end

hset, hdel = {}, {}
for id in pairs(is_toggled) do
  if holdings[id] then
    hset[#hset + 1] = id
    hset[#hset + 1] = holdings[id]
  else
    hdel[#hdel + 1] = id
  end
end
call('HSET', 'holdings', hset)
call('HDEL', 'holdings', hdel)
call('RPUSH', 'history', new_rows)
call('SADD', 'grants', new_grants)
return answer
