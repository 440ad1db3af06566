-- What the other scripts share.

-- The time of the store in microseconds.
local function now()
    local time = redis.call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function whole(number)
    return string.format('%.0f', number)
end

-- A value, unless it is larger than any that was put.
local function read(key, max_bytes)
    if redis.call('STRLEN', key) > tonumber(max_bytes) then
        return redis.error_reply('TOOLARGE')
    end
    return redis.call('GET', key)
end

-- Stores a value, and its name in the index of its parent if it has one. Names whose values have expired leave the index, some at a time.
local function write(key, index, name, value, ttl)
    redis.call('SET', key, value, 'PX', ttl)
    if not index then
        return
    end
    local at = now() / 1000
    redis.call('ZADD', index, whole(at + ttl), name)
    local expired = redis.call('ZRANGEBYSCORE', index, '-inf', whole(at), 'LIMIT', 0, 16)
    if #expired > 0 then
        redis.call('ZREM', index, unpack(expired))
    end
    if redis.call('PTTL', index) < tonumber(ttl) then
        redis.call('PEXPIRE', index, ttl)
    end
end
