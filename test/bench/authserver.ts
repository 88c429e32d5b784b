/**
 * Measures the cost of the authorization server on the memory store and on Redis: whole logins, refreshes, token checks
 * of MCP requests (known tokens and new ones), and ten thousand registrations, with the memory that each leaves behind.
 *
 * Sixteen clients run at once, and each waits for its response. Each operation first runs alone, to warm up and to
 * measure its memory; then all run in turns. CPU time is the server's own. Ratios compare with a minimal token endpoint
 * (read a body, sign one JWT) in the same process and round. Takes about a minute and a half; BENCH_ROUNDS is the
 * number of rounds on the memory store. `node test/bench/authserver.ts`; BENCH_PROFILE_DIR=dir writes CPU profiles of
 * the server.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { missingRedis, type RedisProcess, startRedis } from '../helpers/redis.ts'
import { type AimName, reached } from './aims.ts'
import { measureDpop } from './authserver/dpop.ts'
import { type Http, makeHttp } from './authserver/http.ts'
import { login, refresh, register } from './authserver/login.ts'
import { type Machine, makeMachine, tokenWithKey, tokenWithSecret } from './authserver/machine.ts'
import { pin } from './common/cores.ts'
import { pinSelf } from './vmcp/rig.ts'
import { inTurns, median, ratioOf } from './common/turns.ts'
import { progress, quantile, sorted, table } from './vmcp/table.ts'

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const redisRounds = 3
const sliceMs = 1_000
const clients = 16
/** Default number of operations for a memory measurement. It makes a few hundred bytes per operation visible. */
const alone = 5_000
/** Total number. One server takes 2 500 registrations at once. */
const registrations = 10_000
const registrationsOfOne = 2_000
const registrationsOfSlice = 500
/** On a busy machine, the server's code is not fully compiled after a second and a half. */
const warmMs = 1_500
const warmRounds = 800
/** A server allows 5 000 login starts in ten minutes. */
const loginsAlone = 1_500
const loginsOfSlice = 300
const maxColdTokens = 4_000
/** Together with the warm-up and all rounds, this is below the limits of each client. */
const assertionsAlone = 2_000
const assertionsOfSlice = 800

interface Measured {
  readonly count: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicros: number
}

/** Runs everything and prints the tables. */
export async function run(): Promise<void> {
  pinSelf()
  await measureDpop()
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
  const machine = await makeMachine()
  const args = [store, upstream, machine.secret, JSON.stringify(machine.key.jwk)]
  const { child, said } = await startPeer('authserver.ts', args)
  const issuers = said as readonly string[]
  const [issuer = ''] = issuers
  const http = makeHttp()
  try {
    const phases = makePhases({ http, issuers, machine })
    const left: (readonly (string | number)[])[] = []
    for (const phase of phases) {
      progress(`${name}: ${phase.name}`)
      await phase.warm()
      const before = await memoryOf(http, issuer, redis)
      const { count } = await measure(http, issuer, phase.work, { limit: phase.alone() })
      const after = await memoryOf(http, issuer, redis)
      const each = (later: number, earlier: number): number => Math.round((later - earlier) / count)
      left.push([
        phase.name,
        count,
        (after.heap - before.heap) / 1e6,
        each(after.heap, before.heap),
        ...(redis ? [each(after.redis, before.redis)] : []),
        after.rss / 1e6,
      ])
    }
    progress(`${name}: in turns`)
    const slices = await inTurns(phases, { rounds: redis ? redisRounds : rounds }, (phase) =>
      measure(http, issuer, phase.work, phase.slice()),
    )
    console.log(`\n${name} store\n\n${costs(slices, redis === undefined)}\n`)
    const each = ['bytes each', ...(redis ? ['Redis bytes each'] : [])]
    console.log(table(['after', 'count', 'heap grew MB', ...each, 'RSS MB'], left))
  } finally {
    http.close()
    child.kill()
  }
}

/** Returns the table. `counts` is true when its ratios have an aim. */
function costs(slices: ReadonlyMap<Phase, readonly Measured[]>, counts: boolean): string {
  const [base = []] = [...slices.values()].map((all) => all.map(({ cpuMicros }) => cpuMicros))
  const rows = [...slices].map(([{ name, aim }, all]) => {
    const of = (figure: keyof Measured) => all.map((slice) => slice[figure])
    const ratio = ratioOf(of('cpuMicros'), base)
    if (counts && aim) reached(aim, ratio)
    const figures = (['perSecond', 'p50Ms', 'p99Ms', 'cpuMicros'] as const).map((one) => median(of(one)))
    return [name, ...figures, ratio]
  })
  return table(['what', 'per second', 'p50 ms', 'p99 ms', 'CPU µs each', 'CPU of one signed answer'], rows)
}

interface Scene {
  readonly http: Http
  readonly issuers: readonly string[]
  readonly machine: Machine
}

interface Phase {
  readonly name: string
  readonly aim?: AimName
  /** Runs one operation for one of the clients. */
  work(client: number): Promise<void>
  /** Creates all one-time state, so that it does not count as growth. */
  warm(): Promise<unknown>
  /** Number of operations in the memory measurement. */
  alone(): number
  slice(): Limits
}

function makePhases({ http, issuers, machine }: Scene): readonly Phase[] {
  const [issuer = ''] = issuers
  const refreshTokens: string[] = []
  const unseen: string[] = []
  let seen = ''
  let clientId = ''
  let person = 0
  let registered = 0
  let assertions = 0
  const accepted = async (token: string): Promise<void> => {
    const got = await http.get(`${issuer}/mcp`, { authorization: `Bearer ${token}` })
    if (got.status !== 200) throw new Error(`mcp: ${got.status} ${got.text}`)
  }
  const phase = (
    name: string,
    work: Phase['work'],
    { aim, count = alone, limit }: { aim?: AimName; count?: number; limit?: number } = {},
  ): Phase => ({
    name,
    ...(aim && { aim }),
    work,
    warm: () => loop(work, { ms: warmMs, atLeast: warmRounds }),
    alone: () => count,
    slice: () => ({ ms: sliceMs, ...(limit && { limit }) }),
  })
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
      { aim: 'login', count: loginsAlone, limit: loginsOfSlice },
    ),
    phase(
      'refresh with rotation',
      async (client) => {
        const tokens = await refresh(http, issuer, clientId, refreshTokens[client] ?? '')
        refreshTokens[client] = tokens.refresh_token
        if (seen === '') seen = tokens.access_token
        else if (unseen.length < maxColdTokens) unseen.push(tokens.access_token)
      },
      { aim: 'refresh' },
    ),
    phase('client credentials with a secret', () => tokenWithSecret(http, issuer, machine), {
      aim: 'clientSecret',
    }),
    phase('client credentials with a key', () => tokenWithKey(http, issuer, machine, ++assertions), {
      aim: 'clientKey',
      count: assertionsAlone,
      limit: assertionsOfSlice,
    }),
    phase('MCP request, token seen before', () => accepted(seen)),
    {
      // Tokens that were issued by refreshes since the previous slice.
      name: 'MCP request, new token',
      aim: 'newToken',
      work: () => accepted(unseen.pop() ?? ''),
      warm: async () => {},
      alone: () => unseen.length,
      slice: () => ({ limit: unseen.length }),
    },
    {
      name: 'registration',
      work: async () => {
        const number = ++registered
        await register(http, issuers[Math.floor(number / registrationsOfOne)] ?? issuer, number)
      },
      warm: async () => {},
      alone: () => registrations - rounds * registrationsOfSlice,
      slice: () => ({ limit: registrationsOfSlice }),
    },
  ]
}

interface Limits {
  /** Duration, unless `limit` is reached first. */
  readonly ms?: number
  /** Minimum number, even if it takes longer. */
  readonly atLeast?: number
  /** Maximum number. */
  readonly limit?: number
}

/**
 * Runs all clients at once, and each waits for its response. Returns the duration of each operation in milliseconds.
 */
async function loop(
  work: (client: number) => Promise<void>,
  { ms = Number.POSITIVE_INFINITY, atLeast = 0, limit = Number.POSITIVE_INFINITY }: Limits,
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
  http: Http,
  issuer: string,
  work: (client: number) => Promise<void>,
  limits: Limits,
): Promise<Measured> {
  const cpu = await cpuMicros(http, issuer)
  const start = performance.now()
  const ms = sorted(await loop(work, limits))
  const elapsed = (performance.now() - start) / 1_000
  return {
    count: ms.length,
    perSecond: ms.length / elapsed,
    p50Ms: quantile(ms, 0.5),
    p99Ms: quantile(ms, 0.99),
    cpuMicros: ((await cpuMicros(http, issuer)) - cpu) / ms.length,
  }
}

/** User and system time of the server. */
async function cpuMicros(http: Http, issuer: string): Promise<number> {
  return Number((await http.get(`${issuer}/cpu`)).text)
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
  if (file === 'authserver.ts' && child.pid !== undefined) pin(child.pid, '0')
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { child, said: JSON.parse(line) }
}

if (process.argv[1] === import.meta.filename) await run()
