-- Writes one commit, all or nothing. Every check comes before the first write.
-- KEYS: thread, log, then what is named by its place. ARGV[1] holds numbers, then
-- come the expected position and the new head, then the rest in the order in which
-- Go writes it (arguments.go).
-- Returns 0, or a code: 1 written before, 2 fenced, 3 conflict, 6 too new; and
-- 8*n+4 or 8*n+5 for message n, which already exists or has an unknown parent.
local T, LOG = KEYS[1], KEYS[2]
local at = 3
local function arg()
  at = at + 1
  return ARGV[at]
end
local function numbers(text)
  local list = {}
  for n in text:gmatch('%d+') do list[#list + 1] = tonumber(n) end
  return unpack(list)
end
-- What a message's data begins with, and Go writes with appendName: here, its parent.
local function name(text)
  local n, unit, from = 0, 1, 0
  repeat
    from = from + 1
    local byte = text:byte(from)
    n, unit = n + byte % 128 * unit, unit * 128
  until byte < 128
  return text:sub(from + 1, from + n)
end
-- Lua's stack bounds how many arguments a call can have.
local function each(n, f)
  for from = 1, n, 1000 do f(from, math.min(from + 999, n)) end
end

local format, now, repeated, seen, inboxAt, historyAt, hasEntry, hasState, nMessages, nClear, nPut, nDelete, nKeep, trim, nFields, nForget = numbers(ARGV[1])
local INBOX, HISTORY = KEYS[inboxAt], KEYS[historyAt]
local expected, new = ARGV[2], ARGV[3]

local fields, ids, parents, data = { 'v', 'h', 'o', 'l', 'c', 'w' }, {}, {}, {}
local nHead = #fields
-- A thread that is not there yet has no messages to look for, which matters when a
-- history of thousands is imported. If it is there after all, the commit fails.
local isNew = expected == '0:0:0,1;'
for n = 1, nMessages do
  ids[n], data[n] = ARGV[at + 1], ARGV[at + 2]
  parents[n] = name(data[n])
  at = at + 2
  if not isNew then fields[nHead + n] = 'm:' .. ids[n] end
end
local got = {}
each(#fields, function(from, to)
  local page = redis.call('HMGET', T, unpack(fields, from, to))
  for n = from, to do got[n] = page[n - from + 1] end
end)

-- A head begins with its position: etag and nonce, each preceded by its length, then
-- epoch and next record number.
local head = got[2] or '0:0:0,1;'
if got[1] and (tonumber(got[1]) or 0) > format then return 6 end
if repeated == 1 or head:sub(1, #expected) ~= expected then
  local function position(h)
    local n, rest = h:match('^(%d+):(.*)$')
    if not n then return end -- damaged
    n = tonumber(n)
    local etag = rest:sub(1, n)
    local k, more = rest:sub(n + 1):match('^(%d+):(.*)$')
    if not k then return end
    k = tonumber(k)
    return etag, more:sub(1, k), more:sub(k + 1):match('^%d+')
  end
  local etag, nonce, epoch = position(head)
  local _, wantNonce, wantEpoch = position(expected)
  if etag == position(new) then return 1 end
  if (wantNonce ~= '' or wantEpoch ~= '0') and (nonce ~= wantNonce or epoch ~= wantEpoch) then return 2 end
  return 3
end

local added, last, count = {}, got[4] or '', tonumber(got[3] or '0')
for n = 1, nMessages do
  local id, parent = ids[n], parents[n]
  if got[nHead + n] or added[id] then return 8 * n + 4 end
  if parent ~= '' and parent ~= last and not added[parent]
    and redis.call('HEXISTS', T, 'm:' .. parent) == 0 then return 8 * n + 5 end
  added[id] = true
end

if hasEntry > 0 then
  -- First, because a log that does not fit the head makes it fail. hasEntry is
  -- the number of the entry's last record.
  redis.call('XADD', LOG, string.format('%.0f', hasEntry) .. '-0', '', arg())
end

-- The last message may be one of them, and then it must not be accepted as a parent.
if nForget > 0 then
  local forget = {}
  for n = 1, nForget do forget[n] = 'm:' .. arg() end
  each(nForget, function(from, to) redis.call('HDEL', T, unpack(forget, from, to)) end)
  redis.call('HDEL', T, 'l')
end

local set = { 'h', new }
if not got[1] then
  set[#set + 1], set[#set + 2] = 'v', format
end
if hasState == 1 then
  set[#set + 1], set[#set + 2] = 's', arg()
end
if nMessages > 0 then
  local filled = #set
  for n = 1, nMessages do
    set[filled + 1], set[filled + 2] = 'm:' .. ids[n], (count + n - 1) .. ':' .. data[n]
    filled = filled + 2
  end
  set[filled + 1], set[filled + 2] = 'o', count + nMessages
  set[filled + 3], set[filled + 4] = 'l', ids[nMessages]
end

local history = tonumber(got[5] or '0')
if nClear > 0 then
  local keys = { numbers(arg()) }
  for n = 1, nClear do
    keys[n] = KEYS[keys[n]]
    if keys[n] == HISTORY then history = 0 end
  end
  redis.call('DEL', unpack(keys))
end

for _ = 1, nPut do
  local place, listed, n = numbers(arg())
  local values, ids = {}, {}
  for k = 1, n do
    local id = arg()
    values[2 * k - 1], values[2 * k] = id, arg()
    ids[2 * k - 1], ids[2 * k] = 0, id
  end
  each(2 * n, function(from, to)
    redis.call('HSET', KEYS[place], unpack(values, from, to))
    if listed == 1 then history = history + redis.call('ZADD', HISTORY, unpack(ids, from, to)) end
  end)
end

for _ = 1, nDelete do
  local place, listed, n = numbers(arg())
  local ids = {}
  for k = 1, n do ids[k] = arg() end
  each(n, function(from, to)
    redis.call('HDEL', KEYS[place], unpack(ids, from, to))
    if listed == 1 then history = history - redis.call('ZREM', HISTORY, unpack(ids, from, to)) end
  end)
end

-- Strings compare by locale in Lua; ids compare by bytes.
local function less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

for _ = 1, nKeep do
  local place, listed, keep = numbers(arg())
  local key = KEYS[place]
  if listed == 0 then
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
if history ~= tonumber(got[5] or '0') then
  set[#set + 1], set[#set + 2] = 'c', history
end

-- The user, the parent, and kinds that only this thread knows.
for _ = 1, nFields do
  set[#set + 1], set[#set + 2] = arg(), arg()
end

if trim > 0 then redis.call('XTRIM', LOG, 'MINID', string.format('%.0f', trim + 1)) end

if seen > 0 then
  local items = redis.call('HGETALL', INBOX)
  for n = 1, #items, 2 do
    if tonumber(items[n + 1]:match('^%d+')) <= seen then redis.call('HDEL', INBOX, items[n]) end
  end
end

each(#set, function(from, to) redis.call('HSET', T, unpack(set, from, to)) end)
if hasEntry > 0 and got[6] and tonumber(got[6]) > now then redis.call('PUBLISH', LOG, '') end
return 0
