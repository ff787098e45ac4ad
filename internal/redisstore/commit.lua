-- Writes one commit, all or nothing. Every check comes before the first write.
-- KEYS: thread, log, inbox, history, then the hashes of values that are named by
-- their place. ARGV is read in order; Go writes it in the same order (write.go).
-- Returns 0, or a code: 1 written before, 2 fenced, 3 conflict, 6 too new; and
-- 8*n+4 or 8*n+5 for message n, which is there already or has no parent.
local T, LOG, INBOX, HISTORY = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local at = 0
local function arg()
  at = at + 1
  return ARGV[at]
end
local function num() return tonumber(arg()) end
-- Lua's stack bounds how many arguments a call can have.
local function each(n, f)
  for from = 1, n, 1000 do f(from, math.min(from + 999, n)) end
end

local format, id, etag, nonce, epoch, nxt = num(), arg(), arg(), arg(), arg(), arg()
local user, newNonce, newEpoch, newNext = arg(), arg(), arg(), arg()
local process, updated, now, seen = arg(), arg(), num(), num()

local nMessages = num()
local fields, messages = { 'v', 'e', 'n', 'f', 'x', 'o', 'l', 'c', 'w' }, {}
local nHead = #fields
for n = 1, nMessages do
  local m = { id = arg(), parent = arg(), data = arg() }
  messages[n] = m
  fields[nHead + n] = 'm:' .. m.id
end

local head = {}
each(#fields, function(from, to)
  local got = redis.call('HMGET', T, unpack(fields, from, to))
  for n = from, to do head[n] = got[n - from + 1] end
end)
if head[1] and tonumber(head[1]) > format then return 6 end
if head[2] == id then return 1 end
local hasNonce, hasEpoch = head[3] or '', head[4] or '0'
if (nonce ~= '' or epoch ~= '0') and (hasNonce ~= nonce or hasEpoch ~= epoch) then return 2 end
if hasNonce ~= nonce or hasEpoch ~= epoch or (head[5] or '1') ~= nxt or (head[2] or '') ~= etag then return 3 end

local added, last, count = {}, head[7] or '', tonumber(head[6] or '0')
for n, m in ipairs(messages) do
  if head[nHead + n] or added[m.id] then return 8 * n + 4 end
  if m.parent ~= '' and m.parent ~= last and not added[m.parent]
    and redis.call('HEXISTS', T, 'm:' .. m.parent) == 0 then return 8 * n + 5 end
  added[m.id] = true
end

local entry = arg()
if entry ~= '' then
  -- First, because a log that does not fit the head makes it fail.
  redis.call('XADD', LOG, string.format('%.0f', tonumber(newNext) - 1) .. '-0', '', entry)
end

local set = { 'e', id, 'n', newNonce, 'f', newEpoch, 'x', newNext, 'u', user, 'p', process, 'd', updated }
if not head[1] then
  set[#set + 1], set[#set + 2] = 'v', format
end
if arg() == '1' then
  set[#set + 1], set[#set + 2] = 's', arg()
end
if nMessages > 0 then
  for n, m in ipairs(messages) do
    set[#set + 1], set[#set + 2] = 'm:' .. m.id, (count + n - 1) .. ':' .. m.data
  end
  set[#set + 1], set[#set + 2] = 'o', count + nMessages
  set[#set + 1], set[#set + 2] = 'l', messages[nMessages].id
end

local history = tonumber(head[8] or '0')
local function hdel(key, ids, listed)
  each(#ids, function(from, to)
    redis.call('HDEL', key, unpack(ids, from, to))
    if listed then history = history - redis.call('ZREM', HISTORY, unpack(ids, from, to)) end
  end)
end

local nClear = num()
if nClear > 0 then
  local keys = {}
  for n = 1, nClear do
    keys[n] = KEYS[num()]
    if keys[n] == HISTORY then history = 0 end
  end
  redis.call('DEL', unpack(keys))
end

for _ = 1, num() do -- put, by kind
  local key, listed, n = KEYS[num()], arg() == '1', num()
  local pairs_, ids = {}, {}
  for k = 1, n do
    local value = arg()
    pairs_[2 * k - 1], pairs_[2 * k] = value, arg()
    ids[2 * k - 1], ids[2 * k] = 0, value
  end
  each(2 * n, function(from, to)
    redis.call('HSET', key, unpack(pairs_, from, to))
    if listed then history = history + redis.call('ZADD', HISTORY, unpack(ids, from, to)) end
  end)
end

for _ = 1, num() do -- delete, by kind
  local key, listed, ids = KEYS[num()], arg() == '1', {}
  for k = 1, num() do ids[k] = arg() end
  hdel(key, ids, listed)
end

-- Strings compare by locale in Lua; ids compare by bytes.
local function less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

for _ = 1, num() do -- keep, by kind
  local key, listed, keep = KEYS[num()], arg() == '1', num()
  if not listed then
    local ids = redis.call('HKEYS', key)
    table.sort(ids, less)
    while #ids > 0 and #ids > keep do
      local drop = {}
      for n = 1, math.min(#ids - keep, 1000) do drop[n] = table.remove(ids, 1) end
      redis.call('HDEL', key, unpack(drop))
    end
  elseif history > keep then
    local popped, ids = redis.call('ZPOPMIN', HISTORY, history - keep), {}
    for n = 1, #popped, 2 do ids[#ids + 1] = popped[n] end
    history = keep
    each(#ids, function(from, to) redis.call('HDEL', key, unpack(ids, from, to)) end)
  end
end
if history ~= tonumber(head[8] or '0') then
  set[#set + 1], set[#set + 2] = 'c', history
end

if seen > 0 then
  local items = redis.call('HGETALL', INBOX)
  for n = 1, #items, 2 do
    if tonumber(items[n + 1]:match('^%d+')) <= seen then redis.call('HDEL', INBOX, items[n]) end
  end
end

each(#set, function(from, to) redis.call('HSET', T, unpack(set, from, to)) end)
if entry ~= '' and head[9] and tonumber(head[9]) > now then redis.call('PUBLISH', LOG, '') end
return 0
