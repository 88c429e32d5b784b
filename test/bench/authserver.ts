/**
 * What tokens cost: refreshing with rotation, on the memory store and on Redis, against the cheapest possible token
 * endpoint (read a body, sign one JWT) in the same process and run.
 *
 * Sixteen clients refresh in parallel, each with the token it got last. CPU time is the server's own.
 * `node test/bench/authserver.ts`
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { missingRedis, startRedis } from '../helpers/redis.ts'

export interface TokenRow {
  readonly name: string
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicrosPerRequest: number
  /** Requests per second against the baseline of the same process. */
  readonly ratio: number
}

const seconds = Number(process.env['BENCH_SECONDS'] ?? 5)

/** Runs everything and prints the table. */
export async function run(): Promise<void> {
  const rows = await measureAll()
  console.log('                               req/s    p50 ms   p99 ms   CPU µs   ratio')
  for (const row of rows) {
    const cells = [
      row.requestsPerSecond.toFixed(0).padStart(9),
      row.p50Ms.toFixed(2).padStart(9),
      row.p99Ms.toFixed(2).padStart(8),
      row.cpuMicrosPerRequest.toFixed(0).padStart(8),
      row.ratio.toFixed(2).padStart(7),
    ]
    console.log(row.name.padEnd(28) + cells.join(' '))
  }
  if (missingRedis) console.log(missingRedis)
}

/** One baseline and one row per store. */
export async function measureAll(): Promise<readonly TokenRow[]> {
  const rows = [...(await measureStore('memory', 'memory'))]
  if (missingRedis) return rows
  const redis = await startRedis()
  try {
    rows.push(...(await measureStore('redis', redis.addr)))
  } finally {
    await redis.stop()
  }
  return rows
}

interface Peer {
  readonly issuer: string
  readonly clientId: string
  readonly refreshTokens: readonly string[]
}

async function measureStore(name: string, store: string): Promise<readonly TokenRow[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'peers/authserver.ts'), store], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const pid = child.pid ?? 0
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const peer = readPeer(String(line))
  try {
    const agent = new Agent({ keepAlive: true, maxSockets: 32 })
    const post = (path: string, form: Record<string, string>): Promise<Record<string, unknown>> =>
      send(agent, `${peer.issuer}${path}`, new URLSearchParams(form).toString())
    const tokens = [...peer.refreshTokens]
    const base = await measure(`baseline (${name})`, pid, tokens.length, undefined, async () => {
      await post('/baseline', { grant_type: 'refresh_token', refresh_token: tokens[0] ?? '' })
    })
    const refresh = await measure(`refresh (${name})`, pid, tokens.length, base, async (client) => {
      const form = {
        grant_type: 'refresh_token',
        client_id: peer.clientId,
        refresh_token: tokens[client] ?? '',
      }
      const answer = await post('/oauth/token', form)
      if (typeof answer['refresh_token'] !== 'string') throw new Error(JSON.stringify(answer))
      tokens[client] = answer['refresh_token']
    })
    agent.destroy()
    return [base, refresh]
  } finally {
    child.kill()
  }
}

function readPeer(line: string): Peer {
  const peer: unknown = JSON.parse(line)
  if (typeof peer !== 'object' || peer === null) throw new Error('the peer did not say where it is')
  const { issuer, clientId, refreshTokens } = Object.fromEntries(Object.entries(peer)) as Record<
    string,
    unknown
  >
  if (typeof issuer !== 'string' || typeof clientId !== 'string' || !Array.isArray(refreshTokens)) {
    throw new Error('the peer did not say where it is')
  }
  return { issuer, clientId, refreshTokens: refreshTokens.map(String) }
}

async function measure(
  name: string,
  pid: number,
  clients: number,
  base: TokenRow | undefined,
  once: (client: number) => Promise<void>,
): Promise<TokenRow> {
  const latencies: number[] = []
  const loop = async (client: number, until: number, keep: boolean): Promise<void> => {
    while (performance.now() < until) {
      const start = performance.now()
      await once(client)
      if (keep) latencies.push(performance.now() - start)
    }
  }
  const all = (ms: number, keep: boolean): Promise<unknown> => {
    const until = performance.now() + ms
    return Promise.all(Array.from({ length: clients }, (_, client) => loop(client, until, keep)))
  }
  await all(1000, false)
  const cpu = cpuMicros(pid)
  const start = performance.now()
  await all(seconds * 1000, true)
  const elapsed = (performance.now() - start) / 1000
  const sorted = latencies.toSorted((a, b) => a - b)
  const requestsPerSecond = sorted.length / elapsed
  return {
    name,
    requestsPerSecond,
    p50Ms: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    cpuMicrosPerRequest: (cpuMicros(pid) - cpu) / sorted.length,
    ratio: base ? requestsPerSecond / base.requestsPerSecond : 1,
  }
}

/** User and system time of a process so far; Linux counts in hundredths of a second. */
function cpuMicros(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

/** node:http rather than fetch: the load must cost less than what it measures. */
function send(agent: Agent, url: string, body: string): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': Buffer.byteLength(body),
    }
    const call = request(url, { agent, method: 'POST', headers }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => {
        const answer: unknown = JSON.parse(Buffer.concat(parts).toString())
        resolve(
          typeof answer === 'object' && answer !== null ? Object.fromEntries(Object.entries(answer)) : {},
        )
      })
    })
    call.on('error', reject)
    call.end(body)
  })
}

if (process.argv[1] === import.meta.filename) await run()
