/** `gatehouse run` leaves manifests and a client entry behind on request. */
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { freePort, runGatehouse, startGatehouse } from '../helpers/gatehouse.ts'
import { argvServer, askStarted, startRun } from '../helpers/clients/run-rig.ts'

const home = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-run-')))
t.teardown(() => rmSync(home, { recursive: true, force: true }))
cpSync('test/fixtures/clients/home/.cursor', join(home, '.cursor'), { recursive: true })
const folder = join(home, 'manifests')
const clientFile = join(home, '.cursor/mcp.json')

await t.test(
  'run: --connect adds the address to a client while it runs, --save writes manifests',
  async (t) => {
    const before = readFileSync(clientFile)
    const { running, url } = await startRun(
      t,
      [
        '--connect',
        'cursor',
        '--save',
        folder,
        '-e',
        'TOKEN=canary-saved',
        '--',
        ...argvServer,
        '--api-key',
        'canary-arg',
      ],
      { HOME: home, XDG_STATE_HOME: join(home, 'state') },
    )
    await running.waitFor(/Press Ctrl-C to stop everything/)
    t.match(readFileSync(clientFile, 'utf8'), `"url": "${url}"`)
    t.equal(await running.interrupt(), 0)
    t.ok(readFileSync(clientFile).equals(before), 'byte for byte')
  },
)

await t.test('run: saved manifests pass validation, keep secrets separate, and run with dev', async (t) => {
  t.equal((await runGatehouse(['validate', '-f', folder])).code, 0)
  t.notMatch(readFileSync(join(folder, 'servers.yaml'), 'utf8'), 'canary')
  t.equal(statSync(join(folder, 'secrets.yaml')).mode & 0o777, 0o600)
  t.match(readFileSync(join(folder, '.gitignore'), 'utf8'), '/secrets.yaml')
  const dev = startGatehouse(['dev', '-f', folder, '--port', String(await freePort())])
  t.teardown(() => dev.interrupt())
  const [, url = ''] = await dev.waitFor(/ready at (\S+)/)
  const started = await askStarted(url, 'argv-server_start')
  t.match(started, { args: ['--api-key', 'canary-arg'], token: 'canary-saved' })
})
