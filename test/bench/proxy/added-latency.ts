/**
 * Measures the latency that the proxy adds to a request when it is not busy: 500 requests a second, open loop, on one
 * core.
 */
import autocannon from 'autocannon'
import { progress, quantile, table } from '../vmcp/table.ts'
import { openLoop } from './open-loop.ts'
import { type Peer, pinSelf, startNginx, startProxy, startTarget } from './rig.ts'
import { addedTo, inTurns, median, warmUp } from '../common/turns.ts'
import { call, callHeaders, optimizeSeconds, startProtection } from './throughput.ts'

const RATE = 500
const turns = { rounds: 7, warmUps: 1 }

export async function addedLatency(): Promise<string> {
  pinSelf(1)
  const target = await startTarget()
  const protection = await startProtection()
  const nginx = await startNginx(target, 1)
  const jwt = await startProxy(target, 1, protection.flags)
  const peers: { name: string; peer: Peer; headers?: Readonly<Record<string, string>> }[] = [
    { name: 'direct', peer: target },
    ...(nginx ? [{ name: 'nginx', peer: nginx }] : []),
    { name: 'gatehouse', peer: await startProxy(target, 1) },
    { name: 'gatehouse, JWT known', peer: jwt, headers: protection.headers },
  ]
  progress('warming up')
  const ours = peers.filter(({ name }) => name.startsWith('gatehouse'))
  await warmUp(
    ours,
    optimizeSeconds,
    ({ peer }) => peer.cpuMicros(),
    ({ peer, headers }) =>
      autocannon({
        url: `${peer.origin}/mcp`,
        connections: 8,
        method: 'POST' as const,
        body: call,
        headers: { ...callHeaders, ...headers },
        duration: 1,
      }),
  )
  const slices = await inTurns(peers, turns, async ({ peer, headers }) => {
    const load = { origin: peer.origin, headers: { ...callHeaders, ...headers }, body: call, rate: RATE }
    const ms = await openLoop({ ...load, seconds: 1 })
    return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99) }
  })
  await protection.close()
  const [direct = []] = slices.values()
  return table(
    ['Proxy at 500 requests/s, open loop', 'p50 ms', 'p99 ms', 'added p50 ms', 'added p99 ms'],
    [...slices].map(([{ name }, own]) => {
      const of = (share: 'p50' | 'p99', all = own) => all.map((slice) => slice[share])
      const added = (share: 'p50' | 'p99') =>
        own === direct ? undefined : addedTo(of(share, direct), of(share))
      return [name, median(of('p50')), median(of('p99')), added('p50'), added('p99')]
    }),
  )
}
