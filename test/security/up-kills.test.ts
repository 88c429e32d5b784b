/** `kill -9` in the middle of `gatehouse up` and `gatehouse down`, at many moments. */
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startGatehouse } from '../helpers/gatehouse.ts'
import { makeUpHome, type UpHome } from '../helpers/up/up-home.ts'

t.setTimeout(900_000)

/** Milliseconds between the first changed file and the kill. The later ones hit the other files and the report. */
const delays = [0, 4, 25]

/** Resolves once at least one file changes between the two states. Polls every millisecond, to see the first change. */
async function untilChanged(up: UpHome, count: number, isOver: () => boolean): Promise<void> {
  while (up.changed().length === count && !isOver()) await delay(1)
}

t.test('up: killed while it changes the files, is undone by down', async (t) => {
  for (const ms of delays) {
    const up = await makeUpHome(t)
    const running = up.start()
    await running.waitFor(/^Starting /m)
    await untilChanged(up, 0, () => running.child.exitCode !== null)
    await delay(ms)
    running.child.kill('SIGKILL')
    t.not(up.changed().length, 0, `${ms} ms: ${up.changed().length} files were changed`)
    const { code, stderr } = await up.gatehouse('down')
    t.equal(code, 0, stderr)
    t.strictSame(up.changed(), [])
    t.notOk(existsSync(up.state))
  }
})

t.test('down: killed while it restores the files, completes in the next run', async (t) => {
  const up = await makeUpHome(t)
  for (const ms of delays) {
    await up.up('--background')
    t.equal(up.changed().length, 3)
    const down = startGatehouse(['down'], up.env)
    await untilChanged(up, 3, () => down.child.exitCode !== null)
    await delay(ms)
    down.child.kill('SIGKILL')
    const { code, stderr } = await up.gatehouse('down')
    t.equal(code, 0, stderr)
    t.strictSame(up.changed(), [], `${ms} ms`)
    t.notOk(existsSync(up.state))
  }
})

t.test('up: killed while it changes the files, continues with the next up', async (t) => {
  const up = await makeUpHome(t)
  const running = up.start()
  await running.waitFor(/^Starting /m)
  await untilChanged(up, 0, () => running.child.exitCode !== null)
  running.child.kill('SIGKILL')
  const { stdout } = await up.up('--background')
  t.match(stdout, /^ {2}ready {5}files, memory, thinking {3}3 tools$/m, 'no server is lost')
  t.equal(up.changed().length, 3)
  t.equal((await up.gatehouse('down')).code, 0)
  t.strictSame(up.changed(), [])
})
