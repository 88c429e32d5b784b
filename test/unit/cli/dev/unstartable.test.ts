/** A command that the system cannot start is reported, and its port is released. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { type ProcessPlan } from '../../../../runtime/toolkit/local/plan.ts'
import { PackageFetcher } from '../../../../runtime/toolkit/local/processes/packages.ts'
import { ProcessRunner } from '../../../../runtime/toolkit/local/processes/runner.ts'
import { freePort } from '../../../helpers/gatehouse.ts'

for (const stdio of [true, false]) {
  for (const [argument, why] of [
    ['canary\0', /^an argument or a variable contains a NUL character$/],
    ['x'.repeat(4 << 20), /E2BIG/],
  ] as const) {
    await t.test(`${stdio ? 'stdio' : 'http'}: ${why.source}`, async (t) => {
      const port = await freePort()
      const plan: ProcessPlan = {
        argv: [process.execPath, argument],
        ownWords: 0,
        env: {},
        port,
        isEntrance: false,
        readyPath: undefined,
        stdio,
        bridgeMode: 'streamable-http',
        consoleUrl: undefined,
        secrets: [],
        fingerprint: '',
      }
      const changed = Promise.withResolvers<void>()
      const runner = new ProcessRunner(plan, 1000, {
        packages: new PackageFetcher(() => undefined),
        onChange: changed.resolve,
        onLine: () => undefined,
      })
      await changed.promise
      t.match(runner.state, { phase: 'failed', cause: { category: 'program_not_started', detail: why } })
      await runner.stop()
      const server = createServer().listen(port, '127.0.0.1')
      await once(server, 'listening')
      server.close()
    })
  }
}
