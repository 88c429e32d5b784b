/**
 * The steps that Redis must do atomically, as Lua. All time is the server's, so replicas agree.
 *
 * Scripts touch only the keys they are given (cluster rule) and need the command categories read, write, scripting
 * and connection.
 */
import { createHash } from 'node:crypto'

export interface Script {
  readonly source: string
  readonly sha1: string
}

const script = (source: string): Script => ({
  source,
  sha1: createHash('sha1').update(source).digest('hex'),
})

/** KEYS: entry. ARGV: 1 if a value was seen, that value, 1 to write, the new value, ttl in ms or 0 to keep it. */
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
 * KEYS: buckets. ARGV: cost, then capacity and refill time in ms per bucket. Answers {1} or {0, wait in ms, index}.
 * A level is kept as "tokens atMs".
 */
export const takeTokens = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local cost = tonumber(ARGV[1])
local levels, longest, by = {}, 0, 0
for i, key in ipairs(KEYS) do
  local capacity, refill = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local have = capacity
  local last = redis.call('GET', key)
  if last then
    local tokens, at = string.match(last, '^(%S+) (%S+)$')
    have = math.min(capacity, tokens + math.max(0, now - at) * capacity / refill)
  end
  levels[i] = have
  if have < cost then
    local wait = math.ceil((cost - have) * refill / capacity)
    if wait > longest then longest, by = wait, i end
  end
end
if by > 0 then return {0, longest, by} end
for i, key in ipairs(KEYS) do
  local level = string.format('%.17g %.0f', levels[i] - cost, now)
  redis.call('SET', key, level, 'PX', string.format('%.0f', 2 * ARGV[2 * i + 1]))
end
return {1}`)
