/** Threads of `gatehouse dev` that exit unexpectedly: the reason is reported, and their program is started again. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { PackageFetcher } from '../../../../runtime/toolkit/local/processes/packages.ts'
import { ProcessRunner } from '../../../../runtime/toolkit/local/processes/runner.ts'
import { startThread } from '../../../../runtime/toolkit/local/processes/thread.ts'
import { freePort } from '../../../helpers/gatehouse.ts'

const ends: Readonly<Record<string, readonly [string, RegExp]>> = {
  error: [`throw new TypeError('of mine')`, /^failed: of mine$/],
  rejection: [`Promise.reject(new Error('nobody waits'))`, /^failed: nobody waits$/],
  exit: ['process.exit(3)', /^exited with code 3$/],
}

function program(t: Test, text: string): readonly string[] {
  return [process.execPath, join(t.testdir({ 'program.js': text }), 'program.js')]
}

for (const [name, [text, reason]] of Object.entries(ends)) {
  await t.test(`thread: ${name} ends only the thread, with the reason`, async (t) => {
    const argv = program(t, text)
    const thread = startThread({ argv, env: {}, cwd: process.cwd() }, argv.length, () => undefined)
    t.match(await thread.exited, reason)
  })
}

await t.test('thread: a failed thread is started again on its port, and the reason is shown', async (t) => {
  const text = `
    import { existsSync } from 'node:fs'
    import { createServer } from 'node:http'
    console.log('here')
    if (!existsSync(process.argv[2])) throw new Error('not yet')
    createServer((_, response) => response.end()).listen(Number(process.argv[3]), '127.0.0.1')
    const { parentPort } = await import('node:worker_threads')
    parentPort.on('message', () => process.exit(0))`
  const dir = t.testdir({ 'program.mjs': text })
  const port = await freePort()
  const ready = join(dir, 'ready')
  const seen: string[] = []
  const done = Promise.withResolvers<void>()
  const runner = new ProcessRunner(
    {
      argv: [process.execPath, join(dir, 'program.mjs'), ready, String(port)],
      ownWords: 2,
      env: {},
      port,
      isEntrance: false,
      readyPath: '/',
      stdio: false,
      bridgeMode: 'streamable-http',
      consoleUrl: undefined,
      secrets: [],
      fingerprint: '',
    },
    60_000,
    {
      packages: new PackageFetcher(() => undefined),
      onLine: () => undefined,
      onChange() {
        const { phase, why, lines } = runner.state
        seen.push(`${phase}: ${why ?? ''} ${(lines ?? []).join()}`)
        if (phase === 'failed') writeFileSync(ready, '')
        if (phase === 'ready') done.resolve()
      },
    },
  )
  t.teardown(() => runner.stop())
  await done.promise
  t.strictSame(
    seen.filter((line) => line.startsWith('failed')),
    ['failed: The program exited: failed: not yet: here here'],
  )
  t.match(runner.state, { phase: 'ready', restarts: 1, lastEnd: 'The program exited: failed: not yet: here' })
})
