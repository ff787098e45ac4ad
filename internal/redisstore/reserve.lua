-- Makes a reservation, all of it or nothing. Every check comes before the first
-- write.
-- KEYS: reservation, clock, then the account of each entry. ARGV: the time, when
-- the reservation expires, then for each entry the account's name as it is in keys,
-- the amount, the limit, and when it expires. Times are in ms; 0 is never.
-- Returns 0 and 0, or the number of the entry that would exceed its limit, and what
-- its account has counted.
local RESERVATION, CLOCK = KEYS[1], KEYS[2]
local now = tonumber(ARGV[1])
local function gone(expires) return expires ~= '0' and tonumber(expires) <= now end

local held = redis.call('HGET', RESERVATION, 'e')
if held and not gone(held) then return { 0, 0 } end

local entries = {}
for n = 1, #KEYS - 2 do
  local at = 4 * n - 1
  local e = { key = KEYS[n + 2], name = ARGV[at], amount = ARGV[at + 1], expires = ARGV[at + 3] }
  local account = redis.call('HMGET', e.key, 'n', 'e', 'b')
  local used = 0
  if account[1] and not gone(account[2]) then
    used, e.till, e.born = tonumber(account[1]), account[2], account[3]
  end
  if tonumber(e.amount) > tonumber(ARGV[at + 2]) - used then return { n, used } end
  entries[n] = e
end

-- The callers' clock decides what has expired. It is kept for an hour; by then keys
-- have also expired by Redis's own.
redis.call('SET', CLOCK, ARGV[1], 'PX', 3600000)
-- What has expired by the caller's time may still be there by Redis's.
redis.call('DEL', RESERVATION)
local time = redis.call('TIME')
local born = time[1] .. '.' .. time[2]
for _, e in ipairs(entries) do
  if not e.born then
    redis.call('DEL', e.key)
    redis.call('HSET', e.key, 'b', born, 'e', e.expires)
  elseif e.till ~= '0' and (e.expires == '0' or tonumber(e.expires) > tonumber(e.till)) then
    redis.call('HSET', e.key, 'e', e.expires)
  else
    e.expires = e.till
  end
  redis.call('HINCRBY', e.key, 'n', e.amount)
  redis.call('HSET', RESERVATION, 'a:' .. e.name, e.amount .. ':' .. (e.born or born))
end
redis.call('HSET', RESERVATION, 'e', ARGV[2])

-- Last, because what has expired by Redis's time is gone with this.
local function expire(key, expires)
  if expires == '0' then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, expires) end
end
for _, e in ipairs(entries) do expire(e.key, e.expires) end
expire(RESERVATION, ARGV[2])
return { 0, 0 }
