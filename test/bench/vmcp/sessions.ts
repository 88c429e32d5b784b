/** Measures the cost of idle sessions, and the impact of untrusted clients that open sessions and leave. */
import { once } from 'node:events'
import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { reached } from '../aims.ts'
import type { ProbeAnswer } from '../soak/probe.ts'
import { BenchClient, callOf } from './client.ts'
import { startBackends, startServer } from './rig.ts'
import { progress, table } from './table.ts'

const SESSIONS = 10_000
const AT_ONCE = 64
/** A new session does not evict a session that was idle for less than a minute. */
const GRACE_MS = 61_000
const MB = 1024 * 1024

type Kind = 'opened only' | 'after one tools/call each' | 'with an open GET stream each'

/** A stream needs a socket on both sides. More streams need a higher limit of open files than most machines have. */
const NUMBER: Readonly<Record<Kind, number>> = {
  'opened only': SESSIONS,
  'after one tools/call each': SESSIONS,
  'with an open GET stream each': 2_000,
}

/**
 * Measures the memory of an idle session: only opened, after one call (so that the backend has a session too), with a
 * stream.
 */
async function each(): Promise<string> {
  const rows: (string | number)[][] = []
  const backend = await startBackends({ tools: 20 })
  for (const kind of Object.keys(NUMBER) as Kind[]) {
    const server = await startServer(backend.urls)
    const client = new BenchClient(server.url, AT_ONCE)
    const streams = new Streams(server.url)
    // One-time allocations must not count as memory of a session.
    await use(client, streams, 300, kind)
    const before = await server.memory({ settle: true })
    progress(`${NUMBER[kind]} idle sessions ${kind}`)
    const count = NUMBER[kind] - 300
    await use(client, streams, count, kind)
    const after = await server.memory({ settle: true })
    const live = ((after.liveHeap ?? 0) - (before.liveHeap ?? 0)) / count / 1024
    const outside = (after.external - before.external) / count / 1024
    const rss = (after.rss - before.rss) / count / 1024
    if (kind === 'after one tools/call each') reached('idleSession', rss)
    rows.push([kind, NUMBER[kind], live, outside, live + outside, rss, after.rss / MB])
    streams.close()
    await client.close()
    await server.stop()
  }
  await backend.stop()
  return table(
    [
      'idle sessions',
      'number',
      'KB heap each',
      'KB outside the heap each',
      '**KB each**',
      'KB RSS each',
      'RSS MB in all',
    ],
    rows,
  )
}

async function use(client: BenchClient, streams: Streams, count: number, kind: Kind): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) {
    const ids = await client.openSessions(Math.min(AT_ONCE, count - done), AT_ONCE)
    if (kind === 'after one tools/call each')
      await Promise.all(ids.map((id) => client.result(callOf('session', 'b0_echo', id))))
    if (kind === 'with an open GET stream each') await Promise.all(ids.map((id) => streams.open(id)))
  }
}

/** Open GET streams, each on its own connection. */
class Streams {
  readonly #url: string
  readonly #open: ClientRequest[] = []

  constructor(url: string) {
    this.#url = url
  }

  async open(session: string): Promise<void> {
    const headers = { accept: 'text/event-stream', 'mcp-session-id': session }
    const asked = get(this.#url, { headers, agent: false })
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`GET: ${response.statusCode}`)
    response.on('error', () => {}).resume()
    this.#open.push(asked)
  }

  close(): void {
    for (const asked of this.#open) asked.destroy()
  }
}

/**
 * Measures clients that only initialize and then leave, beyond the limit, and again a minute later. That minute is for
 * `each`, which has its own servers.
 */
export async function idle(): Promise<string> {
  const rows: (string | number)[][] = []
  const backend = await startBackends({ tools: 20 })
  const server = await startServer(backend.urls)
  const client = new BenchClient(server.url, AT_ONCE)
  const wave = async (name: string, count: number): Promise<void> => {
    progress(`${count} initialize: ${name}`)
    const responses = new Map<string, number>()
    const from = performance.now()
    for (let done = 0; done < count; done += AT_ONCE) {
      for (const { status, body } of await Promise.all(
        Array.from({ length: Math.min(AT_ONCE, count - done) }, () => client.initialize()),
      )) {
        const said = status === 200 ? '200' : `${status} ${/"message":"([^"]*)"/.exec(body)?.[1] ?? ''}`
        responses.set(said, (responses.get(said) ?? 0) + 1)
      }
    }
    const perSecond = count / ((performance.now() - from) / 1_000)
    const memory: ProbeAnswer = await server.memory({ settle: true })
    const said = [...responses].map(([what, times]) => `${what}: ${times}`).join('; ')
    rows.push([
      name,
      count,
      said,
      await sessionsOf(server.url),
      perSecond,
      (memory.liveHeap ?? 0) / MB,
      memory.rss / MB,
    ])
  }
  await wave('first', SESSIONS)
  await wave('past the limit, at once', 2_000)
  const [ofEach] = await Promise.all([each(), setTimeout(GRACE_MS)])
  await wave('past the limit, a minute later', SESSIONS)
  await client.close()
  await server.stop()
  await backend.stop()
  const flooded = table(
    [
      'initialize without DELETE',
      'number',
      'answered',
      'sessions then',
      'per second',
      'live heap MB',
      'RSS MB',
    ],
    rows,
  )
  return `${ofEach}\n\n${flooded}`
}

export async function sessionsOf(url: string): Promise<number> {
  const response = await fetch(new URL('/status', url))
  return ((await response.json()) as { sessions: number }).sessions
}
