/**
 * As many requests as the proxy takes, against direct access and nginx: without authentication, and with a JWT that
 * was checked before. `oneCore` and `twoCores` differ in what the peer under test may use.
 */
import autocannon from 'autocannon'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { callCost, reached } from '../aims.ts'
import { progress, table } from '../vmcp/table.ts'
import { type Peer, pinSelf, startNginx, startProxy, startSilentProxy, startTarget } from './rig.ts'

const CONNECTIONS = 32
const SECONDS = 5
/** Until connections are open and caches full. */
const WARM_UP_SECONDS = 2
/** Until the engine has optimized the whole path, which it begins when there is work: before that a request costs up to four times as much. */
const OPTIMIZE_SECONDS = 12

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

interface Row {
  readonly name: string
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpu: number
}

/** Flags that make the proxy ask for tokens of a local issuer, and a header that satisfies it. */
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
  const rows: Row[] = []
  async function add(name: string, peer: Peer | undefined, headers = {}): Promise<void> {
    if (!peer) return
    progress(name)
    rows.push(await measure(name, peer, headers))
    if (peer !== target) await peer.stop()
  }
  await add('direct', target)
  await add('nginx', await startNginx(target, cores))
  if (cores === 1) await add('gatehouse, request log off', await startSilentProxy(target))
  await add('gatehouse', await startProxy(target, cores))
  const protectedProxy = await startProxy(target, cores, protection.flags)
  await add('gatehouse, JWT known', protectedProxy, protection.headers)
  await target.stop()
  await protection.close()
  if (cores === 1) compare(rows)
  return render(rows, cores)
}

function compare(rows: readonly Row[]): void {
  const cpu = (name: string) => rows.find((row) => row.name === name)?.cpu ?? Number.NaN
  callCost('proxy', cpu('gatehouse'))
  reached('proxyPlain', cpu('gatehouse, request log off') / cpu('nginx'))
  reached('proxyJwt', cpu('gatehouse, JWT known') / cpu('nginx'))
}

async function measure(name: string, peer: Peer, headers: Readonly<Record<string, string>>): Promise<Row> {
  const options = {
    url: `${peer.origin}/mcp`,
    connections: CONNECTIONS,
    method: 'POST' as const,
    headers: { ...callHeaders, ...headers },
    body: call,
  }
  const isOurs = name.startsWith('gatehouse')
  await autocannon({ ...options, duration: isOurs ? OPTIMIZE_SECONDS : WARM_UP_SECONDS })
  const before = peer.cpuMicros()
  const result = await autocannon({ ...options, duration: SECONDS })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${name}: ${result.non2xx} refusals, ${result.errors} errors`)
  const cpu = (peer.cpuMicros() - before) / result.requests.total
  const { p50, p99 } = result.latency
  return { name, perSecond: result.requests.total / result.duration, p50Ms: p50, p99Ms: p99, cpu }
}

function render(rows: readonly Row[], cores: number): string {
  const direct = rows[0]
  const nginx = rows.find(({ name }) => name === 'nginx')
  return table(
    [
      `Proxy on ${cores === 1 ? 'one core' : 'two cores'}, ${CONNECTIONS} connections`,
      ...['requests/s', 'ratio', 'p50 ms', 'p99 ms', 'CPU µs/request', '× nginx'],
    ],
    rows.map((row) => {
      const proxied = row !== direct
      return [
        row.name,
        Math.round(row.perSecond),
        direct ? row.perSecond / direct.perSecond : undefined,
        row.p50Ms,
        row.p99Ms,
        proxied ? row.cpu : undefined,
        proxied && nginx ? row.cpu / nginx.cpu : undefined,
      ]
    }),
  )
}
