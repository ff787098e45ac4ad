-- Writes a commit that only appends to the log, which most commits do. If anything is
-- not as expected, it returns 7 and leaves the judgment to commit.lua. Else it returns 0.
local function append(thread, log, expected, head, number, entry, layout, now)
  local t = redis.call('HMGET', thread, 'h', 'f', 'w', 'e', 'W')
  if not t[1] or t[1]:sub(1, #expected) ~= expected or t[2] ~= layout then return 7 end
  local newest = addEntry(log, t[4], number, entry)
  redis.call('HSET', thread, 'h', head, 'e', newest)
  wake(log, t[3], t[5], tonumber(now))
  return 0
end

-- Writes the commits of several threads. One that fails leaves the others as they are.
-- KEYS: thread and log of each. ARGV: of each, the expected position, the new head, the number of
-- the entry's last record and the entry, the layout, and the time in ms. Returns a number for
-- each.
local results = {}
for n = 1, #KEYS / 2 do
  local at = (n - 1) * 6
  local well, result = pcall(append, KEYS[2 * n - 1], KEYS[2 * n],
    ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6])
  results[n] = well and result or 7
end
return results
