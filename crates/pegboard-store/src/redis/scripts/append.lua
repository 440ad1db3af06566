-- KEYS: log, entries. ARGV: number of entries, their bytes, ttl, entries. Returns the position of the last entry.
-- A log has the position before its first entry ever, and that of its last one. What is between them and not in the list was dropped.
local max, max_bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local log = redis.call('HMGET', KEYS[1], 'base', 'last', 'bytes')
local base, last, bytes = tonumber(log[1] or ''), tonumber(log[2] or ''), tonumber(log[3] or '')
if not (base and last and bytes) then
    redis.call('DEL', KEYS[2])
    base, bytes = now(), 0
    last = base
end
local count = redis.call('LLEN', KEYS[2])
for number = 4, #ARGV do
    redis.call('RPUSH', KEYS[2], ARGV[number])
    last, count, bytes = last + 1, count + 1, bytes + #ARGV[number]
    while count > max or (bytes > max_bytes and count > 1) do
        bytes = bytes - #redis.call('LPOP', KEYS[2])
        count = count - 1
    end
end
redis.call('HSET', KEYS[1], 'base', whole(base), 'last', whole(last), 'bytes', whole(bytes))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return last
