/**
 * Lua scripts for the operations that Redis must execute atomically. All times come from the server, so all clients
 * agree.
 *
 * Scripts access only their own keys (as clusters require), and need the command categories read, write, keyspace,
 * scripting and connection.
 */
import { createHash } from 'node:crypto'

export interface RedisScript {
  readonly source: string
  readonly sha1: string
}

const script = (source: string): RedisScript => ({
  source,
  sha1: createHash('sha1').update(source).digest('hex'),
})

/**
 * KEYS: entry. ARGV: 1 if a value was read before, that value, 1 to write, the new value, ttl in ms or 0 to keep the
 * ttl.
 */
export const swap = script(`
local now = redis.call('GET', KEYS[1])
if ARGV[1] == '1' then
  if now ~= ARGV[2] then return 0 end
elseif now then
  return 0
end
if ARGV[3] ~= '1' then
  redis.call('DEL', KEYS[1])
elseif ARGV[5] ~= '0' then
  redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
else
  redis.call('SET', KEYS[1], ARGV[4], 'KEEPTTL')
end
return 1`)

/**
 * KEYS: buckets. ARGV: cost, then capacity and refill time in ms per bucket. Returns {1} or {0, wait in ms, index}.
 * A level is stored as "tokens ttl". The time of the last write is derived from the remaining ttl, so the script needs
 * no clock and works for users without permission for TIME.
 */
export const takeTokens = script(`
local cost = tonumber(ARGV[1])
local levels, longest, by = {}, 0, 0
for i, key in ipairs(KEYS) do
  local capacity, refill = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local have = capacity
  local last = redis.call('GET', key)
  if last then
    local tokens, life = string.match(last, '^(%S+) (%S+)$')
    local age = math.max(0, life - math.max(0, redis.call('PTTL', key)))
    have = math.min(capacity, tokens + age * capacity / refill)
  end
  levels[i] = have
  if have < cost then
    local wait = math.max(1, math.ceil((cost - have) * refill / capacity - 1e-6))
    if wait > longest then longest, by = wait, i end
  end
end
if by > 0 then return {0, longest, by} end
for i, key in ipairs(KEYS) do
  local life = string.format('%.0f', math.ceil(2 * ARGV[2 * i + 1]))
  redis.call('SET', key, string.format('%.17g %s', levels[i] - cost, life), 'PX', life)
end
return {1}`)

/**
 * KEYS: sums. ARGV per key: amount to add, limit or empty, ttl in ms. Returns 1, or 0 when rejected, followed by the
 * sums.
 */
export const count = script(`
local sums, ok = {}, true
for i, key in ipairs(KEYS) do
  local add, limit = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1])
  local sum = tonumber(redis.call('GET', key) or '0') or 0
  if limit and add >= 0 and (sum + add > limit or sum >= limit) then ok = false end
  sums[i] = sum
end
if ok then
  for i, key in ipairs(KEYS) do
    local add = tonumber(ARGV[3 * i - 2])
    local sum = math.min(9e15, math.max(0, sums[i] + add))
    if add > 0 or (add < 0 and sums[i] > 0) then
      redis.call('SET', key, string.format('%.0f', sum), 'PX', ARGV[3 * i])
    end
    sums[i] = sum
  end
end
table.insert(sums, 1, ok and 1 or 0)
return sums`)
