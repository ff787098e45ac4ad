-- Writes a commit that only appends to the log, which most commits do. If anything is
-- not as expected, it returns 7 and leaves the judgment to commit.lua. Returns 0.
-- KEYS: thread, log. ARGV: the expected position, the new head, the number of the
-- entry's last record and the entry, the layout, and the time in ms.
local t = redis.call('HMGET', KEYS[1], 'h', 'f', 'w', 'e')
if not t[1] or t[1]:sub(1, #ARGV[1]) ~= ARGV[1] or t[2] ~= ARGV[5] then return 7 end
local newest = addEntry(KEYS[2], t[4], ARGV[3], ARGV[4])
redis.call('HSET', KEYS[1], 'h', ARGV[2], 'e', newest)
if t[3] and tonumber(t[3]) > tonumber(ARGV[6]) then redis.call('PUBLISH', KEYS[2] .. DATABASE, '') end
return 0
