-- Settles a reservation.
-- KEYS: reservation, clock. ARGV: what the keys of accounts begin with, the most
-- that an account counts, then for each account its name as it is in keys, and the
-- actual amount.
-- Returns 0.
local RESERVATION = KEYS[1]
local held = redis.call('HGETALL', RESERVATION)
if #held == 0 then return 0 end
local now = tonumber(redis.call('GET', KEYS[2]) or '0')
local function gone(expires) return expires ~= '0' and tonumber(expires) <= now end

local actual = {}
for n = 3, #ARGV, 2 do actual[ARGV[n]] = tonumber(ARGV[n + 1]) end
local changes = {}
for n = 1, #held, 2 do
  if held[n] == 'e' then
    if gone(held[n + 1]) then return 0 end
  else
    local name = held[n]:sub(3)
    local amount, born = held[n + 1]:match('^(%d+):(.*)$')
    local key = ARGV[1] .. name
    local account = redis.call('HMGET', key, 'n', 'e', 'b')
    -- One that was born at another time is a later account of the same name.
    if account[3] == born and not gone(account[2]) then
      local used = math.min(tonumber(account[1]) - tonumber(amount) + (actual[name] or 0), tonumber(ARGV[2]))
      changes[#changes + 1] = { key, string.format('%.0f', used) }
    end
  end
end
for _, change in ipairs(changes) do redis.call('HSET', change[1], 'n', change[2]) end
redis.call('DEL', RESERVATION)
return 0
