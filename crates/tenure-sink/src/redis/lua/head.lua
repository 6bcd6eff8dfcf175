-- What all verbs share. KEYS[1] is the sink's own key, `{NAME}:fences`: a hash with its own record under the empty name, and
-- the fence of each resource under the resource's. The other two keys are named after it.
-- Numbers of 64 bits are text here: Lua would round them. Whatever is refused is refused before the first write.

-- Of two whole numbers as text, neither with a zero in front.
local function is_below(one, other)
  return #one < #other or (#one == #other and one < other)
end

local function beside(own, name)
  return string.sub(own, 1, -7) .. name
end

local function record_of(rule, reopened, floor)
  return '1 ' .. rule .. ' ' .. reopened .. ' ' .. floor
end

-- The sink's record and a resource's fence; which server this is. A failover and a restart give a server another
-- replication id, so it is read each time. The first value says why there is no answer.
local function look(own, rule, resource)
  local read = redis.pcall('HMGET', own, '', resource)
  if read.err then return {'unread', read.err} end
  local record, fence = read[1], read[2]
  if not record then
    if redis.call('EXISTS', own) == 1 then return {'foreign'} end
    return {'missing'}
  end
  local schema, found, reopened, floor = string.match(record, '^(%d+) (%S+) (%d+) (%S+)$')
  if schema ~= '1' then return {'schema', schema or record} end
  if found ~= rule then return {'rule', found} end
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' then return {'unread', info.err} end
  if not string.find(info, 'role:master', 1, true) then return {'replica'} end
  local _, at = string.find(info, 'master_replid:', 1, true)
  if not at then return {'nameless'} end
  return nil, string.sub(info, at + 1, at + 40) .. ':' .. reopened, floor, fence, reopened
end

local function parts_of(fence)
  return string.match(fence, '^(%d+) (%x+) (%x+:%d+) (%d+)\n?(.*)$')
end

-- Registers a token. The names are in order, for listing.
local function register(own, resource, is_new, epoch, grant, generation, seal_no, enrolled)
  if not string.match(epoch, '^[1-9]%d*$') or is_below('9223372036854775807', epoch) or #grant ~= 32
    or not string.match(grant, '^[0-9a-f]+$') or resource == '' or string.match(resource, '%c') then
    return {'malformed', resource .. '@' .. epoch .. ':' .. grant}
  end
  local fence = epoch .. ' ' .. grant .. ' ' .. generation .. ' ' .. seal_no .. '\n' .. enrolled
  if is_new then
    local named = redis.pcall('ZADD', beside(own, 'names'), 0, resource)
    if type(named) == 'table' then return {'unread', named.err} end
  end
  local put = redis.pcall('HSET', own, resource, fence)
  if type(put) == 'table' then return {'unread', put.err} end
  return nil, fence
end

-- Judges a token as tenure_core::fence::admit does. ARGV: resource, epoch, grant, rule. The first value is a refusal;
-- the second the seal's number, the third what undoes a fence that had to be raised.
local function admit()
  local own, resource, epoch, grant, rule = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
  local no, generation, floor, fence = look(own, rule, resource)
  if no then return no end
  local seal_no, enrolled = 0, ''
  if fence then
    local at_epoch, at_grant, at_generation, number, names = parts_of(fence)
    if not at_epoch then return {'damaged', fence} end
    seal_no, enrolled = number, names
    if epoch == at_epoch then
      if grant ~= at_grant then return {'conflict', at_epoch} end
      if rule == 'sealed' and at_generation ~= generation then return 'unsealed' end
      return nil, number
    end
    if is_below(epoch, at_epoch) then return {'stale', at_epoch} end
  elseif floor ~= '-' and not is_below(floor, epoch) then
    return {'stale', floor}
  end
  if rule == 'sealed' then return 'unsealed' end
  seal_no = string.format('%.0f', seal_no + 1)
  no = register(own, resource, not fence, epoch, grant, generation, seal_no, enrolled)
  if no then return no end
  return nil, seal_no, function()
    if fence then return redis.pcall('HSET', own, resource, fence) end
    redis.pcall('HDEL', own, resource)
    redis.pcall('ZREM', beside(own, 'names'), resource)
  end
end

-- What stands of an operation: state, epoch, digest, outcome; nothing when it may run. The first value says why that is
-- not known. Records have a mark of the empty name, so that nobody takes lost ones for none.
local function recall(operation)
  local records = beside(KEYS[1], 'operations')
  local read = redis.pcall('HMGET', records, '', ARGV[1] .. '\n' .. operation)
  if read.err then return {'unread', read.err} end
  if not read[1] then return {'lost', records} end
  if not read[2] then return nil end
  local state, epoch, _, digest, outcome = string.match(read[2], '^(%S+) (%d+) (%d+) (%x+) (.*)$')
  if not state then return {'damaged', read[2]} end
  if state == 'not-applied' then return nil end
  return nil, state, epoch, digest, outcome
end

local function remember(operation, state, epoch, seal_no, digest, outcome)
  local record = state .. ' ' .. epoch .. ' ' .. seal_no .. ' ' .. digest .. ' ' .. outcome
  return redis.pcall('HSET', beside(KEYS[1], 'operations'), ARGV[1] .. '\n' .. operation, record)
end

-- Why a command is not for an effect; nothing when it is. After these the record would be written to another database, and the
-- operation would be done again.
local function misplaced(name)
  if type(name) ~= 'string' then return nil end
  local upper = string.upper(name)
  if upper == 'SELECT' or upper == 'SWAPDB' then
    return upper .. ' leads to another database, where nobody looks for the operation: open the sink there, or take MOVE or COPY'
  end
end

-- Applies an effect: judges the token, looks for the operation, runs it, records it. ARGV[5] operation (empty: none),
-- [6] digest, [7] outcome. `effect` returns an error or nil, what to say, and whether it may have written.
local function apply(effect)
  local operation, digest, outcome = ARGV[5], ARGV[6], ARGV[7]
  local no, seal_no, undo = admit()
  if no then return no end
  if operation ~= '' then
    local lost, state, epoch, before, said = recall(operation)
    if lost then
      if undo then undo() end
      return lost
    end
    if state == 'unknown' then return {'broken', epoch, before, said} end
    if state and before == digest then return {'replay', epoch, said} end
    if state then return {'conflict', epoch} end
    -- A right that is missing after the effect would lose its record.
    if redis.acl_check_cmd and not redis.acl_check_cmd('HSET', beside(KEYS[1], 'operations'), 'a', 'b') then
      if undo then undo() end
      return {'unread', 'NOPERM HSET ' .. beside(KEYS[1], 'operations')}
    end
  end
  local failed, said, has_written = effect()
  if failed and not has_written then
    if undo then undo() end
    return {'failed', failed}
  end
  if operation ~= '' then
    local state = failed and 'unknown' or 'done'
    local put = remember(operation, state, ARGV[2], seal_no, digest, failed or said or outcome)
    if type(put) == 'table' then failed = (failed or 'it ended well') .. '; its record was refused: ' .. put.err end
  end
  if failed then return {'broken', ARGV[2], digest, failed} end
  if said then return {'written', said} end
  return 'written'
end
