-- KEYS: value, lease, index. ARGV: name, value, ttl, fence. Returns 1 if the value is stored.
if redis.call('HGET', KEYS[2], 'fence') ~= ARGV[4] then
    return 0
end
write(KEYS[1], KEYS[3], ARGV[1], ARGV[2], ARGV[3])
return 1
