/** Logins at the servers of `gatehouse run` and `gatehouse dev`, with the addresses that the terminal shows. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'
import { missingBrowser, openBrowser } from '../../helpers/authserver/signed-in-client.ts'
import { group, manifest, startDev, virtualServer } from '../../helpers/dev-rig.ts'
import { freePort, runGatehouse, type RunningGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { connect } from '../../helpers/mcp/clients.ts'
import { backendState, startProtectedServer } from '../../helpers/sign-in/rig.ts'
import { argvServer } from '../../helpers/clients/run-rig.ts'

t.setTimeout(180_000)

interface Folders {
  readonly env: NodeJS.ProcessEnv
  readonly state: string
}

/** Separate folders for temporary files and state, so that sessions of other tests are not found. */
function folders(t: Pick<Test, 'testdir'>): Folders {
  const root = t.testdir({ tmp: {}, state: {} })
  const state = join(root, 'state')
  return { state, env: { ...process.env, TMPDIR: join(root, 'tmp'), GATEHOUSE_STATE_DIR: state } }
}

async function startRun(
  t: { teardown(work: () => unknown): void },
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<RunningGatehouse & { readonly url: string }> {
  const port = String(await freePort())
  const running = startGatehouse(['run', '--port', port, ...args], env)
  t.teardown(() => running.interrupt())
  const [url] = await running.waitFor(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/m)
  return { ...running, url }
}

const signInLine = /^mail: requires a sign-in: open (http:\/\/127\.0\.0\.1:\d+\/sign-in\/mail\?key=\S+)$/m

await t.test(
  'run --url: the terminal, tools list, Chromium, a restart',
  { skip: missingBrowser },
  async (t) => {
    const server = await startProtectedServer(t)
    const { env, state } = folders(t)
    const args = ['--url', `mail=${server.url}`, '--server', `other=${argvServer.join(' ')}`]
    const run = await startRun(t, args, env)
    const [, address = ''] = await run.waitFor(signInLine)
    await run.waitFor(/^other: responding$|Press Ctrl-C/m)

    const listed = await runGatehouse(['tools', 'list', run.url], '', env)
    t.equal(listed.code, 0)
    t.match(listed.stdout, /other_start/)
    t.notMatch(listed.stdout, /whoami/)
    t.match(listed.stderr, `mail requires a sign-in: open ${address}`)

    const browser = await openBrowser(t)
    const page = await browser.newPage()
    await page.goto(address)
    t.equal(await page.locator('h1').textContent(), 'You are signed in')
    t.match(page.url(), /^http:\/\/localhost:\d+\/callback\?/)
    await run.waitFor(/^mail: responding$/m)
    const after = await runGatehouse(['tools', 'list', run.url], '', env)
    t.match(after.stdout, /mail_whoami/)
    t.equal(after.stderr.includes('sign-in'), false)
    await run.interrupt()
    checkOutput(t, run.output(), state, page.url())

    const again = await startRun(t, args, env)
    await again.waitFor(/^All servers are responding\.$/m)
    const client = await connect('sdk1', again.url)
    t.equal(await client.callText('mail_whoami'), 'alice')
    await client.close()
  },
)

/** The log contains no code, state or token. */
function checkOutput(
  t: { notMatch(text: string, part: string): void },
  output: string,
  state: string,
  callback: string,
): void {
  const { searchParams } = new URL(callback)
  for (const name of ['code', 'state']) t.notMatch(output, searchParams.get(name) ?? name)
  for (const file of readdirSync(state)) t.notMatch(output, readFileSync(join(state, file), 'latin1'))
}

await t.test('run --from: an imported remote server', async (t) => {
  const server = await startProtectedServer(t)
  const { env } = folders(t)
  const file = join(t.testdirName, 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { mail: { type: 'http', url: server.url } } }))
  const run = await startRun(t, ['--from', file], env)
  const [, address = ''] = await run.waitFor(signInLine)
  const page = await new Browser().open(address)
  t.match(page.text, /You are signed in/)
  await run.waitFor(/^The server is responding\.$/m)
})

await t.test('dev: an MCPServerEntry', async (t) => {
  const server = await startProtectedServer(t)
  const { env } = folders(t)
  const entry = manifest('MCPServerEntry', 'mail', {
    groupRef: { name: 'g' },
    remoteUrl: server.url,
    transport: 'streamable-http',
  })
  const { dev, port } = await startDev(t, [group(), virtualServer(), entry], { env })
  const [, address = ''] = await dev.waitFor(/MCPServerEntry mail: sign in: open (http:\S+)/)
  await dev.waitFor(/v: ready at /)
  const page = await new Browser().open(address)
  t.match(page.text, /You are signed in/)
  await backendState(
    { vmcp: { origin: `http://127.0.0.1:${port}` } },
    'mail',
    ({ health }) => health === 'healthy',
  )
  const client = await connect('sdk1', `http://127.0.0.1:${port}/mcp`)
  t.equal(await client.callText('mail_whoami'), 'alice')
  await client.close()
})
