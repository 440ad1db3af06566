-- KEYS: index. ARGV: what the keys of values begin with, number of values, their bytes. Returns whether there are more, then names and values.
-- The values have the hash tag of the index, so that a cluster has them on the same node.
local max, max_bytes = tonumber(ARGV[2]), tonumber(ARGV[3])
local names = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(now() / 1000), '+inf', 'LIMIT', 0, max + 1)
local found, bytes = { 0 }, 0
for _, name in ipairs(names) do
    local key = ARGV[1] .. name
    local size = redis.call('STRLEN', key)
    if size == 0 then
        redis.call('ZREM', KEYS[1], name)
    else
        bytes = bytes + size
        if #found > 2 * max or bytes > max_bytes then
            found[1] = 1
            break
        end
        found[#found + 1] = name
        found[#found + 1] = redis.call('GET', key)
    end
end
return found
