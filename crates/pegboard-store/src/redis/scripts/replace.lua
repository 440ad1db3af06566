-- KEYS: value, index. ARGV: name, value, ttl, largest value, expected value. Returns 1, or the value that is there, if one is.
local there = read(KEYS[1], ARGV[4])
if there ~= ARGV[5] then
    return there
end
write(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
return 1
