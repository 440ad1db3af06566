-- KEYS: log, entries. ARGV: position, number of entries, their bytes. Returns the position of the last entry, whether entries were missed, the
-- position before the first entry returned, and the entries.
local position, max, max_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local log = redis.call('HMGET', KEYS[1], 'base', 'last')
local base, last = tonumber(log[1] or ''), tonumber(log[2] or '')
if not (base and last) then
    return { 0, position > 0 and 1 or 0, 0 }
end
local before = last - redis.call('LLEN', KEYS[2])
local from, missed = position, 0
if position == 0 then
    from, missed = before, before > base and 1 or 0
elseif position < before or position > last then
    from, missed = before, 1
end
local found, bytes, first = { last, missed, from }, 0, from - before
while #found - 3 < max do
    local some = redis.call('LRANGE', KEYS[2], first, first + math.min(16, max + 3 - #found) - 1)
    for _, entry in ipairs(some) do
        bytes = bytes + #entry
        if bytes > max_bytes and #found > 3 then
            return found
        end
        found[#found + 1] = entry
    end
    if #some == 0 then
        break
    end
    first = first + #some
end
return found
