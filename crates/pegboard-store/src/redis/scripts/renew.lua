-- KEYS: lease. ARGV: holder, ttl in microseconds or 0 to release it, ttl of the key, fence. Returns 1 if the holder had it.
local at = now()
local lease = redis.call('HMGET', KEYS[1], 'fence', 'holder', 'until')
if lease[1] ~= ARGV[4] or lease[2] ~= ARGV[1] or (tonumber(lease[3] or '') or 0) <= at then
    return 0
end
local ttl = tonumber(ARGV[2])
redis.call('HSET', KEYS[1], 'until', whole(ttl == 0 and 0 or at + ttl))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
