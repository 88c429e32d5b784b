/** What the proxy adds to a request when it is not busy: 500 requests a second, open loop, on one core. */
import autocannon from 'autocannon'
import { progress, quantile, table } from '../vmcp/table.ts'
import { openLoop } from './open-loop.ts'
import { type Peer, pinSelf, startNginx, startProxy, startTarget } from './rig.ts'
import { call, callHeaders, startProtection } from './throughput.ts'

const RATE = 500
const SECONDS = 10
/** Rounds alternate between the peers, so that a disturbance of the machine does not hit one of them alone. */
const ROUNDS = 2

export async function addedLatency(): Promise<string> {
  pinSelf(1)
  const target = await startTarget()
  const protection = await startProtection()
  const nginx = await startNginx(target, 1)
  const peers: { name: string; peer: Peer; headers: Record<string, string>; ms: Float64Array[] }[] = [
    { name: 'direct', peer: target, headers: {}, ms: [] },
    ...(nginx ? [{ name: 'nginx', peer: nginx, headers: {}, ms: [] }] : []),
    { name: 'gatehouse', peer: await startProxy(target, 1), headers: {}, ms: [] },
    {
      name: 'gatehouse, JWT known',
      peer: await startProxy(target, 1, protection.flags),
      headers: { ...protection.headers },
      ms: [],
    },
  ]
  for (const { name, peer, headers } of peers) {
    progress(`${name}: warming up`)
    const options = { url: `${peer.origin}/mcp`, connections: 8, method: 'POST' as const, body: call }
    await autocannon({ ...options, headers: { ...callHeaders, ...headers }, duration: 3 })
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, peer, headers, ms } of peers) {
      progress(`${name}: ${RATE} requests a second`)
      const load = { origin: peer.origin, headers: { ...callHeaders, ...headers }, body: call, rate: RATE }
      await openLoop({ ...load, seconds: 1 })
      ms.push(await openLoop({ ...load, seconds: SECONDS / ROUNDS }))
    }
  }
  await protection.close()
  const results = peers.map(({ name, ms }) => {
    const all = Float64Array.from(ms.flatMap((each) => [...each])).sort()
    return { name, p50: quantile(all, 0.5), p99: quantile(all, 0.99) }
  })
  const direct = results[0]
  return table(
    ['Proxy at 500 requests/s, open loop', 'p50 ms', 'p99 ms', 'added p50 ms', 'added p99 ms'],
    results.map((row) => [
      row.name,
      row.p50,
      row.p99,
      ...(direct && row !== direct ? [row.p50 - direct.p50, row.p99 - direct.p99] : [undefined, undefined]),
    ]),
  )
}
