-- KEYS: bucket. ARGV: burst, tokens per second, amount, longest ttl. Returns how many microseconds to wait; 0 if the tokens are drawn.
local burst, per_second, amount = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at = now()
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, since = tonumber(bucket[1] or '') or burst, tonumber(bucket[2] or '') or at
-- A clock that was set back adds nothing.
tokens = math.min(burst, tokens + math.max(0, at - since) / 1000000 * per_second)
if tokens < amount then
    -- What a reply can be is bounded.
    return math.max(1, math.ceil(math.min(tonumber(ARGV[4]) / 1000, (amount - tokens) / per_second) * 1000000))
end
tokens = tokens - amount
redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', tokens), 'at', whole(at))
redis.call('PEXPIRE', KEYS[1], whole(math.min(tonumber(ARGV[4]), (burst - tokens) / per_second * 1000 + 1000)))
return 0
