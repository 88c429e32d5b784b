/**
 * Measures the maximum throughput of the proxy against direct access and nginx: without authentication, and with a
 * cached JWT. `oneCore` and `twoCores` differ in the cores of the measured program.
 */
import autocannon from 'autocannon'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { reached } from '../aims.ts'
import { inTurns, median, ratioOf, warmUp } from '../common/turns.ts'
import { progress, table } from '../vmcp/table.ts'
import { type Peer, pinSelf, startNginx, startProxy, startTarget } from './rig.ts'

const CONNECTIONS = 32
const SECONDS = 0.5
const ROUNDS = 15
/** Interval of autocannon's samples. It stops at the end of one. */
const SAMPLE_MS = 50
/**
 * CPU seconds until the engine has optimized the whole path, which requires load. Before that, a request costs up to
 * four times as much.
 */
export const optimizeSeconds = 8

export const call = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'x'.repeat(120) } },
})
export const callHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

interface Measured {
  readonly name: string
  readonly peer: Peer
  readonly headers: Readonly<Record<string, string>>
}

interface Slice {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpu: number
}

/** Flags that make the proxy require tokens of a local issuer, and a header with a valid token. */
export interface Protection {
  readonly flags: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  close(): Promise<void>
}

export async function startProtection(): Promise<Protection> {
  const issuer = await startTokenIssuer()
  const token = await issuer.token('bench', { scope: 'openid profile email', client_id: 'bench' })
  return {
    flags: [
      ...['--oidc-issuer', issuer.issuer, '--oidc-jwks-url', issuer.jwksUrl],
      ...['--oidc-audience', issuer.audience],
    ],
    headers: { authorization: `Bearer ${token}` },
    close: () => issuer.close(),
  }
}

export const oneCore = (): Promise<string> => measureOn(1)
export const twoCores = (): Promise<string> => measureOn(2)

async function measureOn(cores: number): Promise<string> {
  pinSelf(cores)
  const target = await startTarget(cores)
  const protection = await startProtection()
  const nginx = await startNginx(target, cores)
  const start = async (name: string, flags: readonly string[], headers = {}): Promise<Measured> => ({
    name,
    peer: await startProxy(target, cores, flags),
    headers,
  })
  const measured: Measured[] = [
    { name: 'direct', peer: target, headers: {} },
    ...(nginx ? [{ name: 'nginx', peer: nginx, headers: {} }] : []),
    ...(cores === 1 ? [await start('gatehouse, request log off', ['--log-level', 'warn'])] : []),
    await start('gatehouse', []),
    await start('gatehouse, JWT known', protection.flags, protection.headers),
  ]
  progress('warming up')
  const ours = measured.filter(({ name }) => name.startsWith('gatehouse'))
  await warmUp(
    ours,
    optimizeSeconds,
    ({ peer }) => peer.cpuMicros(),
    (one) => load(one, 1),
  )
  const slices = await inTurns(measured, { rounds: ROUNDS, warmUps: 1 }, (one) => load(one, SECONDS))
  await protection.close()
  if (cores === 1) compare(slices)
  return render(slices, cores)
}

async function load({ name, peer, headers }: Measured, seconds: number): Promise<Slice> {
  const before = peer.cpuMicros()
  const result = await autocannon({
    url: `${peer.origin}/mcp`,
    connections: CONNECTIONS,
    method: 'POST' as const,
    headers: { ...callHeaders, ...headers },
    body: call,
    duration: seconds,
    sampleInt: SAMPLE_MS,
  })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${name}: ${result.non2xx} refusals, ${result.errors} errors`)
  const cpu = (peer.cpuMicros() - before) / result.requests.total
  const { p50, p99 } = result.latency
  return { perSecond: result.requests.total / result.duration, p50Ms: p50, p99Ms: p99, cpu }
}

type Slices = ReadonlyMap<Measured, readonly Slice[]>

const valuesOf = (slices: Slices, name: string, figure: keyof Slice): readonly number[] =>
  [...slices].find(([one]) => one.name === name)?.[1].map((slice) => slice[figure]) ?? []

function compare(slices: Slices): void {
  const cpu = (name: string) => valuesOf(slices, name, 'cpu')
  reached('proxyPlain', ratioOf(cpu('gatehouse, request log off'), cpu('nginx')))
  reached('proxyJwt', ratioOf(cpu('gatehouse, JWT known'), cpu('nginx')))
}

function render(slices: Slices, cores: number): string {
  return table(
    [
      `Proxy on ${cores === 1 ? 'one core' : 'two cores'}, ${CONNECTIONS} connections`,
      ...['requests/s', 'ratio', 'p50 ms', 'p99 ms', 'CPU µs/request', '× nginx'],
    ],
    [...slices.keys()].map(({ name }) => {
      const of = (figure: keyof Slice) => valuesOf(slices, name, figure)
      const proxied = name !== 'direct'
      return [
        name,
        Math.round(median(of('perSecond'))),
        ratioOf(of('perSecond'), valuesOf(slices, 'direct', 'perSecond')),
        median(of('p50Ms')),
        median(of('p99Ms')),
        proxied ? median(of('cpu')) : undefined,
        proxied ? ratioOf(of('cpu'), valuesOf(slices, 'nginx', 'cpu')) : undefined,
      ]
    }),
  )
}
