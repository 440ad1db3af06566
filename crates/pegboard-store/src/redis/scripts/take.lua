-- KEYS: value, index. ARGV: name, largest value. Returns the value that was there, if one was.
local there = read(KEYS[1], ARGV[2])
redis.call('DEL', KEYS[1])
if KEYS[2] then
    redis.call('ZREM', KEYS[2], ARGV[1])
end
return there
