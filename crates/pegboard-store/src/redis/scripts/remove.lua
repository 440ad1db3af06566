-- KEYS: value, index. ARGV: name. Returns how many values were removed.
if KEYS[2] then
    redis.call('ZREM', KEYS[2], ARGV[1])
end
return redis.call('DEL', KEYS[1])
