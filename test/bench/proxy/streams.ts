/**
 * Measures event streams through the proxy: time to the first byte, delay of an event, and memory of an open stream.
 */
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { reached } from '../aims.ts'
import { inTurns, median, warmUp } from '../common/turns.ts'
import { progress, quantile, sorted, table } from '../vmcp/table.ts'
import { memoryHead, memoryRow } from './memory.ts'
import { type Peer, pinSelf, startNginx, startProbedProxy, startProxy, startTarget } from './rig.ts'

const FIRST_BYTES = 500
const AT_ONCE = 50
/** CPU seconds until the proxy has optimized the whole path. */
const OPTIMIZE_SECONDS = 3
const turns = { rounds: 5, warmUps: 1 }
const OPEN_STREAMS = 1_000
const accept = { accept: 'text/event-stream' }

/** Measures the first byte of a stream and the delay of an event against direct access and nginx. */
export async function streams(): Promise<string> {
  pinSelf(1)
  const target = await startTarget()
  const nginx = await startNginx(target, 1)
  const peers: { name: string; peer: Peer; first: number[] }[] = [
    { name: 'direct', peer: target, first: [] },
    ...(nginx ? [{ name: 'nginx', peer: nginx, first: [] }] : []),
    { name: 'gatehouse', peer: await startProxy(target, 1), first: [] },
  ]
  const agent = new Agent({ keepAlive: true })
  progress('first bytes')
  for (let n = -FIRST_BYTES; n < FIRST_BYTES; n++) {
    for (const { peer, first } of peers) {
      const ms = await firstByteMs(peer, agent)
      // The first half warms up.
      if (n >= 0) first.push(ms)
    }
  }
  progress(`${AT_ONCE} streams of 50 events a second`)
  const ours = peers.filter(({ name }) => name === 'gatehouse')
  await warmUp(
    ours,
    OPTIMIZE_SECONDS,
    ({ peer }) => peer.cpuMicros(),
    ({ peer }) => eventDelays(peer, 1),
  )
  const slices = await inTurns(peers, turns, async ({ peer }) => sorted(await eventDelays(peer, 1)))
  agent.destroy()
  return table(
    [
      'Event streams',
      ...['first byte p50 ms', 'first byte p99 ms'],
      ...[`event delay p50 ms (${AT_ONCE} streams × 50/s)`, 'event delay p99 ms'],
    ],
    [...slices].map(([{ name, first }, delays]) => {
      const one = sorted(first)
      const delay = (share: number): number => median(delays.map((slice) => quantile(slice, share)))
      return [name, quantile(one, 0.5), quantile(one, 0.99), delay(0.5), delay(0.99)]
    }),
  )
}

/** Measures the time from the request to the first byte of the first event. */
async function firstByteMs(peer: Peer, agent: Agent): Promise<number> {
  const from = performance.now()
  const res = await open(peer, '/quiet', agent)
  await once(res, 'data')
  const ms = performance.now() - from
  res.destroy()
  return ms
}

/**
 * Measures the time that events are in flight from their time stamps, because target and reader share the system's
 * clock.
 */
async function eventDelays(peer: Peer, seconds: number): Promise<number[]> {
  const delays: number[] = []
  const opened = await Promise.all(Array.from({ length: AT_ONCE }, () => open(peer, '/events')))
  for (const res of opened) {
    res.on('data', (chunk: Buffer) => {
      const now = Number(process.hrtime.bigint()) / 1e6
      for (const match of chunk.toString().matchAll(/"data":([\d.]+)/g)) delays.push(now - Number(match[1]))
    })
  }
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
  for (const res of opened) res.destroy()
  return delays
}

async function open(peer: Peer, path: string, agent?: Agent): Promise<IncomingMessage> {
  const req = get(`${peer.origin}${path}`, { headers: accept, ...(agent ? { agent } : {}) })
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  if (res.statusCode !== 200) throw new Error(`a stream was refused with ${res.statusCode}`)
  res.on('error', () => {})
  return res
}

/** Measures memory with many quiet streams open. */
export async function streamMemory(): Promise<string> {
  pinSelf(1)
  const target = await startTarget()
  const proxy = await startProbedProxy(target)
  progress('warming up')
  await openMany(proxy, 100, async () => {})
  const before = await proxy.memory()
  let within = before
  progress(`${OPEN_STREAMS} streams`)
  await openMany(proxy, OPEN_STREAMS, async () => {
    within = await proxy.memory()
  })
  reached('openStream', (within.residentBytes - before.residentBytes) / OPEN_STREAMS / 1_024)
  return table(memoryHead, [memoryRow(`${OPEN_STREAMS} open event streams`, OPEN_STREAMS, before, within)])
}

async function openMany(peer: Peer, count: number, meanwhile: () => Promise<void>): Promise<void> {
  const opened: IncomingMessage[] = []
  while (opened.length < count) {
    const batch = Array.from({ length: Math.min(50, count - opened.length) }, () => open(peer, '/quiet'))
    opened.push(...(await Promise.all(batch)))
  }
  await Promise.all(opened.map((res) => once(res, 'data')))
  await meanwhile()
  for (const res of opened) res.destroy()
}
