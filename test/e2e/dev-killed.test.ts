/** Kills `gatehouse dev` with SIGKILL: no child process survives, and the next run removes the leftover files. */
import { existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { group, server, startDev, virtualServer } from '../helpers/dev-rig.ts'
import { descendantsOf, isAlive } from '../helpers/gatehouse.ts'

t.setTimeout(180_000)

const stdio = {
  transport: 'stdio',
  podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
}
/** Ignores the end of its input, and SIGTERM. */
const stubborn = `node -e 'process.on("SIGTERM", () => 0); require("net").createServer().listen(process.env.PORT)'`

await t.test('dev: kill -9 ends every child, and the next session removes the files', async (t) => {
  const temp = mkdtempSync(join(tmpdir(), 'gatehouse-killed-'))
  const env = { TMPDIR: temp }
  const docs = [
    group(),
    virtualServer(),
    server('talk', 'node test/helpers/clients/argv-server.ts', stdio),
    server('stubborn', stubborn),
  ]
  const { dev } = await startDev(t, docs, { env })
  await dev.waitFor(/^MCPServer stubborn: ready/m)
  await dev.waitFor(/^MCPServer talk: ready/m)
  const children = descendantsOf(dev.child.pid ?? 0)
  t.ok(children.length >= 3, 'the servers and the watching shell; their proxies run in threads')
  const folder = readdirSync(temp).find((name) => name.startsWith('gatehouse-dev-')) ?? ''
  dev.child.kill('SIGKILL')
  // Node reports the end of child processes only, so this loop polls.
  while (children.some(isAlive)) await sleep(50)
  t.ok(existsSync(join(temp, folder, 'servers.json')), 'the killed session left its files behind')
  const next = await startDev(t, [group(), virtualServer()], { env })
  await next.dev.waitFor(/^VirtualMCPServer v: /m)
  t.notOk(existsSync(join(temp, folder)), 'the next session removed the files')
})
