-- What commit.lua and append.lua have in common; it stands before each of them.

-- Returns the name that begins at a place of the text, as Go writes it with appendName,
-- and the place after it.
local function name(text, from)
  local n, unit = 0, 1
  repeat
    local byte = text:byte(from)
    n, unit, from = n + byte % 128 * unit, unit * 128, from + 1
  until byte < 128
  return text:sub(from, from + n - 1), from + n
end

-- The reverse.
local function withLength(text)
  local n, length = #text, ''
  while n > 127 do
    length, n = length .. string.char(n % 128 + 128), math.floor(n / 128)
  end
  return length .. string.char(n) .. text
end

-- The newest entry of the log is in the thread's field e, if it is small, and every second
-- commit writes it into the stream, together with its own entry. The field has 'u', or 's'
-- if the stream has the entry, too; then the tag of the record before the entry, the number
-- of its last record, and the entry, which begins with its own tag.
-- Adds an entry and returns what the field is then, and whether it wrote into the stream. A log
-- that does not fit the head makes that fail, so it comes before all other writes.
local largeEntry = 4096
local function addEntry(log, newest, number, entry)
  local before, waiting = '\0', nil
  if newest and newest ~= '' then
    local _, from = name(newest, 2)
    local colon = newest:find(':', from, true)
    local _, past = name(newest, colon + 1)
    before = newest:sub(colon + 1, past - 1)
    local flag = newest:sub(1, 1)
    if flag == 'u' then
      waiting = newest:sub(from)
    elseif flag ~= 's' then
      error('the newest entry of the log is damaged')
    end
  end
  local flag = 's'
  if waiting then
    redis.call('XADD', log, number .. '-0', 'e', waiting, 'f', entry)
  elseif #entry > largeEntry then
    redis.call('XADD', log, number .. '-0', '', entry)
  else
    flag = 'u'
  end
  if #entry > largeEntry then return '', true end
  return flag .. before .. number .. ':' .. entry, flag == 's'
end


-- Wakes those who watch the thread in other processes. everywhere and here are the fields w and W, and now
-- is a number. If nobody hears the channel of the shard, its slot may be moving to this node.
local function wake(log, everywhere, here, now)
  if everywhere and tonumber(everywhere) > now then
    redis.call('PUBLISH', log .. DATABASE, '')
  elseif here and tonumber(here) > now then
    local heard = redis.pcall('SPUBLISH', log, '')
    if type(heard) ~= 'number' or heard == 0 then redis.call('PUBLISH', log .. DATABASE, '') end
  end
end
