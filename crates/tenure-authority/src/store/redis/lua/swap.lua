-- Makes changes, each judged alone: fifteen arguments each, named below. What is checked is checked first, by reads that
-- would also find a key of another type; then nothing can fail any more.
local version, incarnation, newest, at_record = m[4], m[5], tonumber(m[6]), m[2]
local rows, looked = redis.call('LLEN', p .. 'history'), {}

local function look(command, key)
  if not looked[key] then
    redis.call(command, key)
    looked[key] = true
  end
end

-- The pieces are 32 bits each.
local function toggle(id, mixed)
  local before = redis.call('HGET', p .. 'holdings', id)
  local after = mixed
  if before then
    after = ''
    for at = 1, 32, 8 do
      local a, b = tonumber(string.sub(before, at, at + 7), 16), tonumber(string.sub(mixed, at, at + 7), 16)
      after = after .. bit.tohex(bit.bxor(a, b))
    end
  end
  if after == '00000000000000000000000000000000' then
    redis.call('HDEL', p .. 'holdings', id)
  else
    redis.call('HSET', p .. 'holdings', id, after)
  end
end

-- In which list a session stands, by the second word of its value.
local function list(state)
  if not state then return nil end
  if state == '-' then return 'ended' end
  if state == incarnation then return 'live' end
  return 'former'
end

local function judge(at)
  local kind, id, expected, relies_on, remembered = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  if at_record ~= identity and kind ~= 'A' then return false end
  if remembered ~= '' and remembered ~= version then return false end
  local before_deadline = ARGV[at + 5]
  if before_deadline ~= '' and now >= tonumber(before_deadline) then return false end
  if relies_on ~= '' then
    local found = redis.call('HGET', p .. 'sessions', relies_on)
    if not found or string.match(found, '^%S+ (%S+)') ~= incarnation then return false end
  end
  local plan = { kind = kind, id = id, at = at }
  local found
  if kind == 'A' then
    if expected ~= version then return false end
    return plan
  elseif kind == 'S' or kind == 's' then
    local value = redis.call('HGET', p .. 'sessions', id)
    if value then found, plan.state = string.match(value, '^(%S+) (%S+)') end
    if kind == 's' or ARGV[at + 7] == '-' then look('ZCARD', p .. 'held:' .. id) end
    look('ZCARD', p .. 'live')
    look('ZCARD', p .. 'former')
    look('ZCARD', p .. 'ended')
  else
    local value = redis.call('HGET', p .. 'leases', id)
    if value then
      found, plan.session, plan.mixed = string.match(value, '^(%S+) (%S+) (%S+)')
      look('ZCARD', p .. 'held:' .. plan.session)
    end
    if ARGV[at + 8] ~= '' then look('ZCARD', p .. 'held:' .. ARGV[at + 8]) end
    look('ZCARD', p .. 'names')
    look('HLEN', p .. 'holdings')
  end
  if (found or '') ~= expected then return false end
  if ARGV[at + 13] ~= '' then look('SCARD', p .. 'grants') end
  return plan
end

local function make(plan)
  local kind, id, at = plan.kind, plan.id, plan.at
  local record, state, when = ARGV[at + 6], ARGV[at + 7], ARGV[at + 8]
  newest = newest + 1
  local fresh = string.format('%.0f', newest)
  -- Told before it is done: nobody sees anything of this before its end, and only telling may be forbidden.
  if ARGV[at + 14] ~= '' then redis.call('PUBLISH', p .. 'changes', ARGV[at + 14]) end
  if kind == 'S' and state == '-' or kind == 's' then
    local held = redis.call('ZRANGE', p .. 'held:' .. id, 0, 100)
    if #held > 100 then held = {'*'} end
    for _, name in ipairs(held) do redis.call('PUBLISH', p .. 'changes', name) end
  end
  if kind == 'A' then
    redis.call('HSET', own, 'record', record, 'version', fresh, 'incarnation', state, 'identity', when)
    if state ~= incarnation then
      redis.call('ZUNIONSTORE', p .. 'former', 2, p .. 'former', p .. 'live')
      redis.call('DEL', p .. 'live')
    end
    version, incarnation, at_record = fresh, state, when
  elseif kind == 'S' then
    local score = ARGV[at + 9]
    if ARGV[at + 10] ~= '' then
      -- A renewal: from now on for a whole ttl, which is given in microseconds and a rest of nanoseconds.
      local deadline = now + tonumber(ARGV[at + 10])
      when = string.format('%.0f', deadline) .. ARGV[at + 11]
      if ARGV[at + 11] ~= '000' then deadline = deadline + 1 end
      score = string.format('%.0f', deadline)
    end
    redis.call('HSET', p .. 'sessions', id, fresh .. ' ' .. state .. ' ' .. when .. ' ' .. record)
    local before, after = list(plan.state), list(state)
    if before and before ~= after then redis.call('ZREM', p .. before, id) end
    redis.call('ZADD', p .. after, score, id)
  elseif kind == 's' then
    redis.call('HDEL', p .. 'sessions', id)
    if plan.state then redis.call('ZREM', p .. list(plan.state), id) end
  else
    local session, mixed = ARGV[at + 8], state
    local stood, stands = plan.mixed and plan.mixed ~= '-', kind == 'L' and mixed ~= '-'
    if kind == 'l' then
      redis.call('HDEL', p .. 'leases', id)
      redis.call('ZREM', p .. 'names', id)
    else
      redis.call('HSET', p .. 'leases', id, fresh .. ' ' .. session .. ' ' .. mixed .. ' ' .. record)
      if not plan.session then redis.call('ZADD', p .. 'names', 0, id) end
    end
    if not (stood and stands and plan.session == session and plan.mixed == mixed) then
      if stood then
        toggle(plan.session, plan.mixed)
        redis.call('ZREM', p .. 'held:' .. plan.session, id)
      end
      if stands then
        toggle(session, mixed)
        redis.call('ZADD', p .. 'held:' .. session, 0, id)
      end
    end
  end
  if ARGV[at + 12] ~= '' then rows = redis.call('RPUSH', p .. 'history', ARGV[at + 12]) end
  if ARGV[at + 13] ~= '' then redis.call('SADD', p .. 'grants', ARGV[at + 13]) end
  local holdings = ''
  if ARGV[at + 10] ~= '' then holdings = redis.call('HGET', p .. 'holdings', id) or '' end
  return fresh .. ' ' .. rows .. ' ' .. holdings
end

local answer, made = {'ok', string.format('%.0f', now), identity}, false
for at = 3, #ARGV, 15 do
  local judged, plan = pcall(judge, at)
  if not judged then
    answer[#answer + 1] = '-' .. (type(plan) == 'table' and plan.err or tostring(plan))
  elseif plan then
    answer[#answer + 1] = make(plan)
    made = true
  else
    answer[#answer + 1] = ''
  end
end
if made then redis.call('HSET', own, 'newest', string.format('%.0f', newest), 'clock', string.format('%.0f', now)) end
return answer
