/** Ctrl-C while `gatehouse up --background` waits for the servers. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { makeUpHome } from '../../helpers/up/up-home.ts'

t.setTimeout(300_000)

const silent = { command: 'node', args: ['-e', 'process.stdin.resume()'] }

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

t.test('up --background: Ctrl-C ends the process and undoes what it changed', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  writeFileSync(up.fileOf('cursor'), JSON.stringify({ mcpServers: { silent, ...up.serversOf('cursor') } }))
  const original = readFileSync(up.fileOf('cursor'))

  const waiting = up.start('--background')
  await waiting.waitFor(/^Starting files, silent …$/m)
  while (!existsSync(join(up.state, 'instance.json'))) await delay(20)
  const { pid } = up.instance()
  t.equal(await waiting.interrupt(), 130)
  t.match(waiting.output(), /^Stopping …$/m)
  t.match(waiting.output(), /^gatehouse up is not running, and no client’s file is changed\.$/m)
  t.notOk(isRunning(pid), 'the process in the background has ended')
  t.notOk(existsSync(up.state))
  t.match(await up.gatehouse('status'), { code: 1, stdout: 'gatehouse up is not running.\n', stderr: '' })

  // The files may already contain the gateway's entry, here from a run that was killed.
  t.equal((await up.up('--background', '--only', 'files')).code, 0)
  process.kill(up.instance().pid, 'SIGKILL')
  t.notOk(original.equals(readFileSync(up.fileOf('cursor'))))
  const again = up.start('--background')
  await again.waitFor(/^Starting files, silent …$/m)
  t.equal(await again.interrupt(), 130)
  t.match(again.output(), /^Cursor: ~\/\.cursor\/mcp\.json restored, byte for byte$/m)
  t.ok(original.equals(readFileSync(up.fileOf('cursor'))))
})
