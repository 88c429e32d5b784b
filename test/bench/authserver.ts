/**
 * What the authorization server costs, on the memory store and on Redis: whole logins, refreshes, checks of the token of
 * an MCP request (seen before, and not), and ten thousand registrations; with the memory that each leaves behind.
 *
 * Sixteen clients at once, each waiting for its response. CPU time is the server's own; ratios are against the cheapest
 * possible token endpoint (read a body, sign one JWT) in the same process and run. About two minutes.
 * `node test/bench/authserver.ts`; BENCH_PROFILE_DIR=dir writes CPU profiles of the server.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { missingRedis, type RedisProcess, startRedis } from '../helpers/redis.ts'
import { reached } from './aims.ts'
import { type Http, makeHttp } from './authserver/http.ts'
import { login, refresh, register } from './authserver/login.ts'
import { progress, quantile, sorted, table } from './vmcp/table.ts'

const seconds = Number(process.env['BENCH_SECONDS'] ?? 8)
const clients = 16
const registrations = 10_000
/** One server takes 2 500 at once. */
const registrationsOfOne = 2_000
/** On a busy machine a second and a half is not enough for the server's code to be compiled. */
const warmRounds = 800
/** A server lets so many logins begin in ten minutes. */
const maxLogins = 4_500
const maxColdTokens = 4_000

interface Measured {
  readonly name: string
  readonly count: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicros: number
}

/** Runs everything and prints the tables. */
export async function run(): Promise<void> {
  const upstream = await startPeer('authserver-upstream.ts', [])
  try {
    await measureStore('memory', 'memory', String(upstream.said))
    if (missingRedis) {
      console.log(missingRedis)
      return
    }
    const redis = await startRedis()
    try {
      await measureStore('Redis', redis.addr, String(upstream.said), redis)
    } finally {
      await redis.stop()
    }
  } finally {
    upstream.child.kill()
  }
}

async function measureStore(
  name: string,
  store: string,
  upstream: string,
  redis?: RedisProcess,
): Promise<void> {
  const { child, said } = await startPeer('authserver.ts', [store, upstream])
  const issuers = said as readonly string[]
  const [issuer = ''] = issuers
  const http = makeHttp()
  try {
    const rows: Measured[] = []
    const left: (readonly (string | number)[])[] = []
    const phases = makePhases({ http, issuers, pid: child.pid ?? 0 })
    for (const phase of phases) {
      progress(`${name}: ${phase.name}`)
      await phase.warm()
      const before = await memoryOf(http, issuer, redis)
      const measured = await phase.run()
      const after = await memoryOf(http, issuer, redis)
      rows.push(measured)
      const each = (later: number, earlier: number): number => Math.round((later - earlier) / measured.count)
      left.push([
        phase.name,
        measured.count,
        (after.heap - before.heap) / 1e6,
        each(after.heap, before.heap),
        ...(redis ? [each(after.redis, before.redis)] : []),
        after.rss / 1e6,
      ])
    }
    const [base] = rows
    if (redis === undefined) compare(rows)
    console.log(`\n${name} store\n`)
    console.log(
      table(
        ['what', 'per second', 'p50 ms', 'p99 ms', 'CPU µs each', 'CPU of one signed answer'],
        rows.map((row) => [
          row.name,
          row.perSecond,
          row.p50Ms,
          row.p99Ms,
          row.cpuMicros,
          row.cpuMicros / (base?.cpuMicros ?? Number.NaN),
        ]),
      ),
    )
    console.log()
    console.log(
      table(
        ['after', 'count', 'heap grew MB', 'bytes each', ...(redis ? ['Redis bytes each'] : []), 'RSS MB'],
        left,
      ),
    )
  } finally {
    http.close()
    child.kill()
  }
}

function compare([base, ...rows]: readonly Measured[]): void {
  const ratio = (name: string) =>
    (rows.find((row) => row.name.startsWith(name))?.cpuMicros ?? Number.NaN) / (base?.cpuMicros ?? Number.NaN)
  reached('login', ratio('login'))
  reached('refresh', ratio('refresh'))
  reached('newToken', ratio('MCP request, new token'))
}

interface Scene {
  readonly http: Http
  readonly issuers: readonly string[]
  readonly pid: number
}

interface Phase {
  readonly name: string
  /** Makes everything that is made once, so that it does not count as growth. */
  warm(): Promise<void>
  run(): Promise<Measured>
}

function makePhases({ http, issuers, pid }: Scene): readonly Phase[] {
  const [issuer = ''] = issuers
  const refreshTokens: string[] = []
  const unseen: string[] = []
  let clientId = ''
  let person = 0
  const mcp = (token: string) => http.get(`${issuer}/mcp`, { authorization: `Bearer ${token}` })
  const accepted = async (token: string): Promise<void> => {
    const got = await mcp(token)
    if (got.status !== 200) throw new Error(`mcp: ${got.status} ${got.text}`)
  }
  const phase = (name: string, work: (client: number) => Promise<void>, limit?: number): Phase => ({
    name,
    warm: () =>
      loop(work, { ms: 1_500, atLeast: warmRounds, limit: limit ?? Number.POSITIVE_INFINITY }).then(() => {}),
    run: () => measure(name, pid, work, { ms: seconds * 1_000, limit: limit ?? Number.POSITIVE_INFINITY }),
  })
  const once = (name: string, limit: () => number, work: (number: number) => Promise<void>): Phase => {
    let number = 0
    return {
      name,
      warm: async () => {},
      run: () => measure(name, pid, () => work(++number), { ms: Number.POSITIVE_INFINITY, limit: limit() }),
    }
  }
  return [
    phase('one signed answer (baseline)', async () => {
      await http.post(`${issuer}/baseline`, 'grant_type=refresh_token')
    }),
    phase(
      'login: page, upstream, code, tokens',
      async (client) => {
        if (clientId === '') clientId = await register(http, issuer, 0)
        const tokens = await login(http, issuer, clientId, ++person)
        refreshTokens[client] = tokens.refresh_token
      },
      maxLogins / 2,
    ),
    phase('refresh with rotation', async (client) => {
      const tokens = await refresh(http, issuer, clientId, refreshTokens[client] ?? '')
      refreshTokens[client] = tokens.refresh_token
      if (unseen.length < maxColdTokens) unseen.push(tokens.access_token)
    }),
    phase('MCP request, token seen before', () => accepted(unseen[0] ?? '')),
    once(
      'MCP request, new token',
      () => unseen.length - 1,
      (number) => accepted(unseen[number] ?? ''),
    ),
    once(
      'registration',
      () => registrations,
      async (number) => {
        const at = issuers[Math.floor(number / registrationsOfOne)] ?? issuer
        await register(http, at, number)
      },
    ),
  ]
}

interface Limits {
  readonly ms: number
  /** So many, even if that takes longer. */
  readonly atLeast?: number
  /** So many at most. */
  readonly limit: number
}

/** All clients at once, each waiting for its response. Returns how long each took, milliseconds. */
async function loop(
  work: (client: number) => Promise<void>,
  { ms, atLeast = 0, limit }: Limits,
): Promise<readonly number[]> {
  const latencies: number[] = []
  const until = performance.now() + ms
  let started = 0
  const one = async (client: number): Promise<void> => {
    while ((performance.now() < until || started < atLeast) && started < limit) {
      started++
      const start = performance.now()
      await work(client)
      latencies.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => one(client)))
  return latencies
}

async function measure(
  name: string,
  pid: number,
  work: (client: number) => Promise<void>,
  limits: Limits,
): Promise<Measured> {
  const cpu = cpuMicros(pid)
  const start = performance.now()
  const ms = sorted(await loop(work, limits))
  const elapsed = (performance.now() - start) / 1_000
  return {
    name,
    count: ms.length,
    perSecond: ms.length / elapsed,
    p50Ms: quantile(ms, 0.5),
    p99Ms: quantile(ms, 0.99),
    cpuMicros: (cpuMicros(pid) - cpu) / ms.length,
  }
}

/** User and system time of a process so far; Linux counts in hundredths of a second. */
function cpuMicros(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

async function memoryOf(
  http: Http,
  issuer: string,
  redis: RedisProcess | undefined,
): Promise<{ heap: number; rss: number; redis: number }> {
  const { text } = await http.get(`${issuer}/memory`)
  const own = JSON.parse(text) as { heap: number; rss: number }
  const used = /used_memory:(\d+)/.exec(redis?.cli('info', 'memory') ?? '')?.[1]
  return { ...own, redis: Number(used ?? 0) }
}

async function startPeer(
  file: string,
  args: readonly string[],
): Promise<{ child: ChildProcess; said: unknown }> {
  const profile = process.env['BENCH_PROFILE_DIR']
  const flags = [
    '--expose-gc',
    ...(profile && file === 'authserver.ts' ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : []),
  ]
  const child = spawn(process.execPath, [...flags, join(import.meta.dirname, 'peers', file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { child, said: JSON.parse(line) }
}

if (process.argv[1] === import.meta.filename) await run()
