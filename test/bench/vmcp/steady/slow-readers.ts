/**
 * Measures clients that request large results and do not read them: the cost of each, the effect on other clients, and
 * their disconnection.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { BenchClient, bodyOf, callOf } from '../client.ts'
import { openLoop } from '../load.ts'
import { startBackends, startServer } from '../rig.ts'
import { progress, quantile, table } from '../table.ts'
import { type Measured, withVerdict } from './verdict.ts'

const READERS = 40
const AT_ONCE = 4
const RATE = 100
const SECONDS = 5
const MB = 1024 * 1024
/**
 * A result has 16 MB. The kernel buffers a part, and the server holds the rest once. The listener checks every 7.5 s,
 * and Node's timeout of 30 s detects in its second period that no byte was sent.
 */
const aims = { mbEach: 4, times: 2, cutWithinS: 80 } as const

export async function slowReaders(): Promise<Measured> {
  const backend = await startBackends({ tools: 20 })
  const server = await startServer(backend.urls)
  const client = new BenchClient(server.url)
  const sessions = await client.openSessions(32)
  const requests = sessions.map((id) => callOf('session', 'b0_echo', id))
  progress('warming up')
  await openLoop(client, requests, 500, 4)
  const before = await server.memory({ settle: true })
  const usual = connectionsOf(server.url)
  const alone = await openLoop(client, requests, RATE, SECONDS)
  progress(`${READERS} slow readers`)
  const sockets: Socket[] = []
  for (let n = 0; n < READERS; n += AT_ONCE)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: AT_ONCE }, (_, i) =>
          neverReads(server.url, sessions[(n + i) % sessions.length] ?? '', n + i),
        ),
      )),
    )
  await setTimeout(2_000)
  const during = await server.memory({ settle: true })
  const beside = await openLoop(client, requests, RATE, SECONDS)
  progress('until they are cut')
  const from = performance.now()
  const cutS = (): number => (performance.now() - from) / 1_000
  while (connectionsOf(server.url) > usual && cutS() < aims.cutWithinS + 5) await setTimeout(500)
  const tookS = cutS()
  const after = await server.memory({ settle: true })
  for (const socket of sockets) socket.destroy()
  await client.close()
  await server.stop()
  await backend.stop()
  const mbEach = (during.rss - before.rss) / READERS / MB
  const [p50, p50Beside] = [quantile(alone.ms, 0.5), quantile(beside.ms, 0.5)]
  const rows = [
    ['before', 0, before.rss / MB, before.external / MB, '', p50, quantile(alone.ms, 0.99)],
    [
      'while they do not read',
      READERS,
      during.rss / MB,
      during.external / MB,
      mbEach,
      p50Beside,
      quantile(beside.ms, 0.99),
    ],
    [`cut after ${tookS.toFixed(0)} s`, 0, after.rss / MB, after.external / MB, '', '', ''],
  ]
  const head = [
    '16 MB results',
    'slow readers',
    'RSS MB',
    'outside the heap MB',
    'MB each',
    'others p50 ms',
    'p99 ms',
  ]
  return withVerdict('vmcp:slow-readers', table(head, rows), [
    { what: `each costs at most ${aims.mbEach} MB (${mbEach.toFixed(2)})`, isMet: mbEach <= aims.mbEach },
    {
      what: `the p50 of others does not double (${(p50Beside / p50).toFixed(2)} times), none fails`,
      isMet: p50Beside < aims.times * p50 && beside.failed === 0,
    },
    {
      what: `all are cut within ${aims.cutWithinS} s (${tookS.toFixed(0)})`,
      isMet: tookS <= aims.cutWithinS,
    },
    {
      what: `what they held is let go (${(after.external / MB).toFixed(0)} MB outside the heap)`,
      isMet: after.external - before.external < (during.external - before.external) / 4 + 16 * MB,
    },
  ])
}

/** Sends the call, reads the beginning of the response, and stops reading. */
async function neverReads(url: string, session: string, n: number): Promise<Socket> {
  const { hostname, port, host, pathname } = new URL(url)
  const sent = callOf('session', 'b0_huge', session)
  const body = bodyOf(sent, 1_000_000 + n)
  const headers = { host, ...sent.headers, 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(`POST ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  await once(socket, 'readable')
  socket.read(1)
  return socket
}

/** Returns the open connections of the server, without those that it has closed. */
function connectionsOf(url: string): number {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0')
  const isOpen = new RegExp(`^\\s*\\d+: [0-9A-F]+:${port} [0-9A-F:]+ 01 `)
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .filter((line) => isOpen.test(line)).length
}
