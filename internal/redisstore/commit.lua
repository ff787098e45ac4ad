-- Writes one commit, all or nothing. Every check comes before the first write.
-- KEYS: thread, log, then what is named by its place. ARGV[1] holds numbers, then
-- come the expected position and the new head, then the rest in the order in which
-- Go writes it (arguments.go). The fields of the thread's hash are in keys.go.
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
-- Lua's stack bounds how many arguments a call can have.
local function each(n, f)
  for from = 1, n, 1000 do f(from, math.min(from + 999, n)) end
end

local layout, now, repeated, seen, inboxAt, listed, hasEntry, hasState, nMessages, voids, nClear, nIntents, nRecent, nPut, nDelete, nKeep, trim, nFields, nForget, cluster = numbers(ARGV[1])
local INBOX = KEYS[inboxAt]
local expected, new = ARGV[2], ARGV[3]
-- Other keys of the thread, which share its slot.
local BASE = T:sub(1, -2)
local HISTORY, CHECKPOINTS, INTENTS, PENDING = BASE .. 'h', BASE .. 'v:checkpoint', BASE .. 'v:intent', BASE .. 'v:pending'

local fields, ids, parents, data = { 'f', 'h', 'o', 'l', 'c', 'w', 'e', 'n', 'q', 'x', 't', 'W' }, {}, {}, {}
local nHead = #fields
-- A thread that is not there yet has no messages to look for, and they are given as they
-- are stored, which matters when a history of thousands is imported. If it is there after
-- all, the commit fails.
local isNew = expected == '0:0:0,1;'
for n = 1, nMessages do
  ids[n], data[n] = ARGV[at + 1], ARGV[at + 2]
  at = at + 2
  if isNew then
    ids[n] = ids[n]:sub(3)
    parents[n] = name(data[n], data[n]:find(':', 1, true) + 1)
  else
    fields[nHead + n] = 'm:' .. ids[n]
    parents[n] = name(data[n], 1)
  end
end
local got = {}
each(#fields, function(from, to)
  local page = redis.call('HMGET', T, unpack(fields, from, to))
  for n = from, to do got[n] = page[n - from + 1] end
end)

-- A head begins with its position: etag and nonce, each preceded by its length, then
-- epoch and next record number.
local head = got[2] or '0:0:0,1;'
if got[1] and (tonumber(got[1]) or 0) > layout then return 6 end
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

-- Strings compare by locale in Lua; ids compare by bytes.
local function less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

local set = { 'h', new }
local function put(field, value) set[#set + 1], set[#set + 2] = field, value end
if got[1] ~= tostring(layout) then put('f', layout) end

-- The newest checkpoints are in the thread's hash, until there are as many as this, or
-- something else is done to checkpoints. Then they are moved to their own, which is
-- trimmed: until then, readers leave out what is too much.
local maxRecent = 16
local history = tonumber(got[5] or '0')
local recent, keeps, newest = 0, 0, nil
if got[10] then
  local n, k, id = got[10]:match('^(%d+):(%d+):(.*)$')
  recent, keeps, newest = tonumber(n), tonumber(k), id
end

-- The intents are in one field, too: ids and values in turns. q names the kinds whose own hash
-- may have values besides.
local intents, own, from = {}, got[9] or '', 1
while got[8] and from <= #got[8] do
  intents[#intents + 1], from = name(got[8], from)
end

local function mayHave(letter) return own:find(letter, 1, true) end

-- While a cluster moves this slot to another node, the keys go one after the other, and Redis
-- sees to those that the call names. Of others, at the node that gives the slot away the commit
-- would end in the middle at one that is not there, also if it has emptied that one itself; and
-- at the node that gets the slot, it would make a second one of a key that has not arrived.
local tryAgain = 'TRYAGAIN the slot of this thread is moving to another node'
local function elsewhere()
  local function refused(...)
    local reply = redis.pcall('EXISTS', ...)
    return type(reply) == 'table' and reply.err
  end
  if refused(T .. '-') then return true end -- by the node that gives the slot away
  if not refused(T, T .. '-') then return false end -- else this may be the node that gets the slot
  local needed = {}
  if history > 0 then needed = { HISTORY, CHECKPOINTS } end
  if mayHave('i') then needed[#needed + 1] = INTENTS end
  if mayHave('p') then needed[#needed + 1] = PENDING end
  for _, key in ipairs(needed) do
    if redis.call('EXISTS', key) == 0 then return true end
  end
  return false
end

local checkpoint, checkpointID, past, keep
if nRecent == 1 then
  checkpoint, keep = arg(), tonumber(arg())
  checkpointID, past = name(checkpoint, 1)
  newest = newest or ''
  if not less(newest, checkpointID) then listed = 1 end
end
local slots, moved = {}, {}
if recent > 0 and (listed == 1 or nRecent == 1 and (recent == maxRecent or keep ~= keeps)) then
  for n = 1, recent do slots[n] = 'x' .. (n - 1) end
  for n, slot in ipairs(redis.call('HMGET', T, unpack(slots))) do
    local id, from = name(slot, 1)
    moved[2 * n - 1], moved[2 * n] = id, slot:sub(from)
  end
end

local function size(texts)
  local n = 0
  for k = 1, #texts do n = n + #texts[k] end
  return n
end
local maxIntents = 16384

-- Whether the commit uses keys that the call does not name, or uses one again that it empties.
local function usesMore()
  return cluster == 2 or listed == 1 or #moved > 0 or nKeep > 0
    or voids % 2 == 1 and mayHave('i') or voids > 1 and mayHave('p')
    or nIntents > 0 and size(intents) > maxIntents
end
if cluster > 0 and usesMore() and elsewhere() then return redis.error_reply(tryAgain) end

-- The first write is one that Redis refuses if its memory is full: once a script has
-- written, it may write all.
local wrote = hasEntry > 0
local function begin()
  if not wrote then redis.call('HSET', T, 'f', layout) end
  wrote = true
end

if hasEntry > 0 or trim > 0 then
  local newest = got[7] or ''
  if newest ~= '' and trim > 0 then
    local _, from = name(newest, 2)
    if tonumber(newest:match('^%d+', from)) <= trim then newest = '' end
  end
  -- hasEntry is the number of the entry's last record.
  if hasEntry > 0 then newest, wrote = addEntry(LOG, newest, string.format('%.0f', hasEntry), arg()) end
  if newest ~= (got[7] or '') then put('e', newest) end
end

-- The last message may be one of them, and then it must not be accepted as a parent.
if nForget > 0 then
  local forget = {}
  for n = 1, nForget do forget[n] = 'm:' .. arg() end
  begin()
  each(nForget, function(from, to) redis.call('HDEL', T, unpack(forget, from, to)) end)
  redis.call('HDEL', T, 'l')
end

if hasState == 1 then put('s', arg()) end
if nMessages > 0 then
  if isNew then
    begin()
    each(2 * nMessages, function(from, to) redis.call('HSET', T, unpack(ARGV, from + 3, to + 3)) end)
  else
    for n = 1, nMessages do put('m:' .. ids[n], (count + n - 1) .. ':' .. data[n]) end
  end
  put('o', count + nMessages)
  put('l', ids[nMessages])
end

-- Writes values, of which those of checkpoints are listed: ids and data in turns.
local function write(key, isListed, values)
  wrote = wrote or #values > 0
  each(#values, function(from, to)
    redis.call('HSET', key, unpack(values, from, to))
    if isListed then
      local listing = {}
      for n = from, to, 2 do
        listing[n - from + 1], listing[n - from + 2] = 0, values[n]
      end
      history = history + redis.call('ZADD', HISTORY, unpack(listing))
    end
  end)
end

-- Removes the oldest checkpoints that are listed.
local function drop(n)
  if n <= 0 then return end
  begin()
  local popped, gone = redis.call('ZPOPMIN', HISTORY, n), {}
  for k = 1, #popped, 2 do gone[#gone + 1] = popped[k] end
  history = history - #gone
  each(#gone, function(from, to) redis.call('HDEL', CHECKPOINTS, unpack(gone, from, to)) end)
end

if #moved > 0 then
  write(CHECKPOINTS, true, moved)
  redis.call('HDEL', T, unpack(slots))
  recent = 0
  if keeps > 0 then drop(history - keeps) end
end

local function has(letter) if not mayHave(letter) then own = own .. letter end end
local function moveIntents()
  if #intents == 0 then return end
  write(INTENTS, false, intents)
  has('i')
  intents = {}
end

local clear = {}
if voids % 2 == 1 then
  intents = {}
  if mayHave('i') then clear[#clear + 1] = INTENTS end
end
if voids > 1 and mayHave('p') then clear[#clear + 1] = PENDING end
if voids == 3 then own = '' end
if nClear > 0 then
  local places = { numbers(arg()) }
  for n = 1, nClear do
    local key = KEYS[places[n]]
    clear[#clear + 1] = key
    if key == HISTORY then history = 0 end
    if key == INTENTS then intents = {} end
  end
end
local cleared = nPut > 0 or nClear > 0
if #clear > 0 and cleared then
  begin()
  redis.call('DEL', unpack(clear))
end

if nIntents > 0 then
  if size(intents) > maxIntents then moveIntents() end
  for n = 1, 2 * nIntents do intents[#intents + 1] = arg() end
end

if nRecent == 1 and listed == 0 then
  put('x' .. recent, checkpoint)
  recent, newest, keeps = recent + 1, checkpointID, keep
elseif nRecent == 1 then
  write(CHECKPOINTS, true, { checkpointID, checkpoint:sub(past) })
  if keep > 0 then drop(history - keep) end
end

for _ = 1, nPut do
  local place, isListed, n = numbers(arg())
  local key, values = KEYS[place], {}
  for k = 1, 2 * n do values[k] = arg() end
  if key == INTENTS then
    moveIntents()
    has('i')
  elseif key == PENDING then
    has('p')
  end
  write(key, isListed == 1, values)
end

for _ = 1, nDelete do
  local place, isListed, n = numbers(arg())
  local key, gone = KEYS[place], {}
  for k = 1, n do gone[k] = arg() end
  if key == INTENTS then
    local is, left = {}, {}
    for k = 1, n do is[gone[k]] = true end
    for k = 1, #intents, 2 do
      if not is[intents[k]] then left[#left + 1], left[#left + 2] = intents[k], intents[k + 1] end
    end
    intents = left
  end
  if key ~= INTENTS or mayHave('i') then
    begin()
    each(n, function(from, to)
      redis.call('HDEL', key, unpack(gone, from, to))
      if isListed == 1 then history = history - redis.call('ZREM', HISTORY, unpack(gone, from, to)) end
    end)
  end
end

for _ = 1, nKeep do
  local place, isListed, keep = numbers(arg())
  local key = KEYS[place]
  if key == INTENTS then moveIntents() end
  if isListed == 0 then
    local all = redis.call('HKEYS', key)
    table.sort(all, less)
    while #all > 0 and #all > keep do
      local gone = {}
      for n = 1, math.min(#all - keep, 1000) do gone[n] = table.remove(all, 1) end
      redis.call('HDEL', key, unpack(gone))
    end
  else
    drop(history - keep)
  end
end
if history ~= tonumber(got[5] or '0') then put('c', history) end
if listed == 1 then
  keeps, newest = 0, redis.call('ZREVRANGE', HISTORY, 0, 0)[1] or ''
end
if newest then
  local x = recent .. ':' .. keeps .. ':' .. newest
  if x ~= got[10] then put('x', x) end
end
for n = 1, #intents do intents[n] = withLength(intents[n]) end
local all = table.concat(intents)
if all ~= (got[8] or '') then put('n', all) end
if own ~= (got[9] or '') then put('q', own) end

-- The user, the parent, and kinds that only this thread knows.
for _ = 1, nFields do
  local field = arg()
  put(field, arg())
end

if trim > 0 then
  begin()
  redis.call('XTRIM', LOG, 'MINID', string.format('%.0f', trim + 1))
  -- An empty stream takes as much memory as a message.
  if redis.call('XLEN', LOG) == 0 then redis.call('DEL', LOG) end
  if trim > tonumber(got[11] or '0') then put('t', string.format('%.0f', trim)) end
end

if seen > 0 then
  begin()
  local items = redis.call('HGETALL', INBOX)
  for n = 1, #items, 2 do
    if tonumber(items[n + 1]:match('^%d+')) <= seen then redis.call('HDEL', INBOX, items[n]) end
  end
end

each(#set, function(from, to) redis.call('HSET', T, unpack(set, from, to)) end)
-- Nothing was put where this was, so it can come last.
if not cleared then
  for _, key in ipairs(clear) do redis.call('DEL', key) end
end
if hasEntry > 0 then wake(LOG, got[6], got[12], now) end
return 0
