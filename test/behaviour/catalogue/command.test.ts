/** `gatehouse catalogue serve`, and `gatehouse add` as its client. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import {
  catalogueConfig,
  namesIn,
  privateServer,
  publicServer,
  startTestCatalogue,
} from '../../helpers/registry/catalogue.ts'

t.setTimeout(240_000)

await t.test(
  'serve: applies a changed file, and keeps the previous one while the file is invalid',
  async (t) => {
    const path = join(t.testdir(), 'catalogue.yaml')
    writeFileSync(path, JSON.stringify(catalogueConfig()))
    const running = startGatehouse(['catalogue', 'serve', '--config', path, '--port', '0'])
    t.teardown(() => running.child.kill())
    const [, url = ''] = await running.waitFor(/"url":"([^"]+)"/)
    t.strictSame(await namesIn(url), [publicServer.name])
    writeFileSync(path, 'name: 1')
    await running.waitFor(/the changed configuration was rejected; the previous one stays active/)
    t.strictSame(await namesIn(url), [publicServer.name])
    const changed = catalogueConfig({ servers: [{ ...publicServer, name: 'com.example/new' }] })
    writeFileSync(path, JSON.stringify(changed))
    await running.waitFor(/catalogue reloaded/)
    t.strictSame(await namesIn(url), ['com.example/new'])
    t.equal(await running.interrupt(), 0)
  },
)

await t.test('serve: an invalid file or flag exits with code 2 and an error that names it', async (t) => {
  const path = join(t.testdir({ 'catalogue.yaml': 'name: tools\n' }), 'catalogue.yaml')
  const rows: readonly (readonly [string[], RegExp])[] = [
    [['--config', path], /incomingAuth: is required/],
    [['--config', `${path}.none`], /catalogue\.yaml\.none/],
    [['--config', path, '--port', 'x'], /--port: must be a whole number/],
    [[], /--config/],
  ]
  for (const [args, message] of rows) {
    const { code, stderr } = await runGatehouse(['catalogue', 'serve', ...args])
    t.equal(code, 2, args.join(' '))
    t.match(stderr, message)
  }
})

await t.test('gatehouse add: finds a server in an anonymous catalogue', async (t) => {
  const { url } = await startTestCatalogue(t)
  const folder = t.testdir()
  const { code, stdout, stderr } = await runGatehouse([
    'add',
    publicServer.name,
    '--registry',
    url,
    '-o',
    folder,
  ])
  t.equal(code, 0, stderr + stdout)
  const manifest = parse(readFileSync(join(folder, 'open.yaml'), 'utf8')) as object
  t.match(manifest, {
    kind: 'MCPServerEntry',
    spec: { remoteUrl: publicServer.url, transport: 'streamable-http' },
  })
  t.match(readFileSync(join(folder, 'registry.lock'), 'utf8'), publicServer.version)
  const unknown = await runGatehouse(['add', privateServer.name, '--registry', url])
  t.not(unknown.code, 0)
  t.match(unknown.stderr, /not found in/)
})

await t.test('gatehouse add: sends a token to a catalogue with authentication', async (t) => {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  const { url } = await startTestCatalogue(t, { incomingAuth: issuer.incomingAuth })
  const folder = t.testdir({ token: `${await issuer.token('alice')}\n`, out: {} })
  const add = [
    'add',
    `${privateServer.name}@${privateServer.version}`,
    '--registry',
    url,
    '-o',
    join(folder, 'out'),
  ]
  const refused = await runGatehouse(add)
  t.match(refused.stderr, /responded with 401; use --bearer-token-file/)
  t.notOk(existsSync(join(folder, 'out/team.yaml')))
  const { code, stderr } = await runGatehouse([...add, '--bearer-token-file', join(folder, 'token')])
  t.equal(code, 0, stderr)
  t.match(readFileSync(join(folder, 'out/team.yaml'), 'utf8'), privateServer.url)
})
