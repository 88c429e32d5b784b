/** Several processes that serve one port, independent of any feature: connections, replacement, output, shutdown. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { descendantsOf } from '../../helpers/gatehouse.ts'

const program = resolve(import.meta.dirname, '../../helpers/workers/program.ts')

interface Running {
  readonly child: ChildProcess
  readonly port: number
  /** Lines of the log so far. */
  readonly log: () => readonly string[]
  get(path: string): Promise<string>
  end(): Promise<number | null>
}

async function start(
  t: Tap,
  count: number,
  waits: readonly number[] = [10_000, 10, 1_000],
): Promise<Running> {
  const child = spawn(process.execPath, [program, String(count), ...waits.map(String)])
  t.teardown(() => child.kill('SIGKILL'))
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk))
  const [first] = await once(child.stdout.setEncoding('utf8'), 'data')
  const port = Number(/port (\d+)/.exec(String(first))?.[1])
  return {
    child,
    port,
    log: () => log.split('\n').slice(0, -1),
    async get(path) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } })
      return response.text()
    },
    async end() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'close')
      return child.exitCode
    },
  }
}

type Tap = Pick<typeof t, 'teardown'>

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(20)
}

t.test('connections go to the workers in turn, and requests reach all of them', async (t) => {
  const run = await start(t, 3)
  const seen = new Set<string>()
  for (let i = 0; i < 6; i++) seen.add(await run.get('/'))
  t.equal(seen.size, 3)
  t.same(new Set(JSON.parse(await run.get('/pids')).map(String)), seen)
  t.equal(await run.get('/unknown'), 'INTERNAL', 'a method that the other side lacks is an error')
  t.equal(await run.end(), 0)
})

t.test('a connection to a worker that dies is passed to another one', async (t) => {
  const run = await start(t, 2)
  const [first = 0] = descendantsOf(run.child.pid ?? 0)
  process.kill(first, 'SIGSTOP')
  const answers = Array.from({ length: 6 }, () => run.get('/'))
  const early = await Promise.race([Promise.all(answers), sleep(1_000)])
  t.equal(early, undefined, 'one request waits for the stopped worker')
  process.kill(first, 'SIGKILL')
  const pids = await Promise.all(answers)
  t.notOk(pids.includes(String(first)))
  t.equal(await run.end(), 0)
})

t.test('a worker that keeps dying early is replaced after growing pauses, up to a limit', async (t) => {
  const run = await start(t, 1, [10_000, 20, 60])
  const waits = () =>
    run.log().flatMap((line) => {
      const { message, waitMs } = JSON.parse(line)
      return message === 'a worker exited unexpectedly and is being replaced' ? [waitMs] : []
    })
  for (let i = 1; i <= 4; i++) {
    await run.get('/die').catch(() => {})
    await until(() => waits().length === i)
  }
  t.same(waits(), [20, 40, 60, 60])
  t.equal(await run.end(), 0)
})

t.test('a worker that has lived long is replaced at once, and the pauses start over', async (t) => {
  const run = await start(t, 1, [1, 20, 60])
  for (let i = 1; i <= 2; i++) {
    await run.get('/die').catch(() => {})
    await until(() => run.log().length === i)
  }
  t.same(
    run.log().map((line) => JSON.parse(line).waitMs),
    [0, 0],
  )
  t.equal(await run.end(), 0)
})

t.test('a worker that hangs is reported, terminated and replaced', async (t) => {
  const run = await start(t, 2, [1, 10, 20, 50, 400])
  const [stuck = 0] = descendantsOf(run.child.pid ?? 0)
  process.kill(stuck, 'SIGSTOP')
  const says = (text: string) => run.log().some((line) => JSON.parse(line).message === text)
  await until(() => says('a worker is not responding and is being killed'))
  await until(() => says('a worker exited unexpectedly and is being replaced'))
  const seen = new Set<string>()
  while (seen.size < 2) seen.add(await run.get('/'))
  t.notOk(seen.has(String(stuck)))
  t.equal(await run.end(), 0)
})

t.test('a request to all workers is answered by the responsive ones', async (t) => {
  const run = await start(t, 2)
  const [stuck = 0, other = 0] = descendantsOf(run.child.pid ?? 0)
  process.kill(stuck, 'SIGSTOP')
  // The first connection may wait for the stopped process.
  const asked = [run.get('/pids'), run.get('/pids')]
  t.same(JSON.parse(await Promise.any(asked)), [other])
  await Promise.allSettled([...asked, Promise.resolve(process.kill(stuck, 'SIGKILL'))])
})

t.test('long lines of several workers stay intact on a pipe with a slow reader', async (t) => {
  const run = await start(t, 3)
  run.child.stderr?.pause()
  const asked = Array.from({ length: 6 }, () => run.get('/lines/20000'))
  await sleep(500)
  run.child.stderr?.resume()
  await Promise.all(asked)
  await until(() => run.log().length === 48)
  const writers = new Set(run.log().map((line) => JSON.parse(line).name))
  t.equal(writers.size, 3)
  for (const line of run.log()) t.equal(JSON.parse(line).text.length, 20_000)
  t.equal(await run.end(), 0)
})

t.test('timeouts apply to connections that another process has accepted', async (t) => {
  const run = await start(t, 1)
  const socket = connect(run.port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost:')
  t.match(await text(socket), /^HTTP\/1\.1 408 /)
  t.equal(await run.end(), 0)
})

t.test('a request in flight is answered before shutdown, and no new connection is accepted', async (t) => {
  const run = await start(t, 2)
  const slow = run.get('/slow/700')
  await sleep(200)
  const ended = run.end()
  await until(() => run.child.exitCode === null)
  await sleep(100)
  await t.rejects(run.get('/'))
  t.match(await slow, /^\d+$/)
  t.equal(await ended, 0)
  t.match(run.log().at(-1), 'ended')
})
