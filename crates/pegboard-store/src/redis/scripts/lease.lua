-- KEYS: lease. ARGV: holder, ttl in microseconds, ttl of the key. Returns 1 and the fence, or 0, the holder and the microseconds that are left.
local at = now()
local lease = redis.call('HMGET', KEYS[1], 'fence', 'holder', 'until')
local fence, ends = tonumber(lease[1] or '') or 0, tonumber(lease[3] or '') or 0
if ends > at and lease[2] ~= ARGV[1] then
    return { 0, lease[2], ends - at }
end
if ends <= at then
    fence = math.max(at, fence + 1)
end
redis.call('HSET', KEYS[1], 'fence', whole(fence), 'holder', ARGV[1], 'until', whole(at + tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return { 1, fence }
