/** `gatehouse vmcp serve|validate|init` as commands. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'

proves('3.config.operational.logLevel', '3.config.groupRef')

t.setTimeout(180_000)

t.test('init writes a file that validate accepts and only its owner can read', async (t) => {
  const file = join(t.testdir({}), 'vmcp.yaml')
  const made = await runGatehouse([
    'vmcp',
    'init',
    '--group',
    'team: "a"',
    '--backend',
    'z=http://127.0.0.1:1/mcp',
    '--backend',
    'a=http://127.0.0.1:2/sse',
    '-o',
    file,
  ])
  t.equal(made.code, 0, made.stderr)
  t.equal(statSync(file).mode & 0o777, 0o600)
  const text = readFileSync(file, 'utf8')
  t.match(text, /name: a\n[^]*transport: sse\n[^]*name: z\n[^]*transport: streamable-http\n/)
  const valid = await runGatehouse(['vmcp', 'validate', '-c', file])
  t.equal(valid.code, 0)
  t.match(valid.stdout, /backends: +2/)
  const shown = await runGatehouse(['vmcp', 'init', '-g', 'x'])
  t.match(shown.stdout, 'backends: []')
  const other = join(t.testdir({}), 'other.yaml')
  t.equal((await runGatehouse(['vmcp', 'init', '-g', 'x', '--config', other])).code, 0)
  t.equal(readFileSync(other, 'utf8'), shown.stdout, '--config is an alias of --output')
  const both = await runGatehouse(['vmcp', 'init', '-g', 'x', '--config', other, '--output', file])
  t.equal(both.code, 2)
})

t.test('init keeps an existing file, and reports why one cannot be written', async (t) => {
  const folder = t.testdir({ 'mine.yaml': 'name: mine\n', 'empty.yaml': '' })
  const mine = join(folder, 'mine.yaml')
  const init = (file: string) => runGatehouse(['vmcp', 'init', '-g', 'x', '-o', file])
  t.match(await init(mine), { code: 2, stderr: /^Error: .*mine\.yaml already exists: / })
  t.equal(readFileSync(mine, 'utf8'), 'name: mine\n')
  const empty = join(folder, 'empty.yaml')
  t.equal((await init(empty)).code, 0, 'as created by mktemp')
  t.match(readFileSync(empty, 'utf8'), 'groupRef: x')
  const absent = join(folder, 'absent', 'new.yaml')
  t.match(await init(absent), { code: 2, stderr: /cannot write \S+new\.yaml: file not found\n$/ })
})

t.test('validate reports every error and exits with the code for configuration errors', async (t) => {
  const file = join(t.testdir({ 'bad.yaml': 'name: x\nbogus: 1\nincomingAuth: {type: oidc}\n' }), 'bad.yaml')
  const { code, stderr } = await runGatehouse(['vmcp', 'validate', '-c', file])
  t.equal(code, 2)
  for (const part of ['invalid configuration:', 'bogus', 'groupRef', 'incomingAuth', 'outgoingAuth'])
    t.match(stderr, part)
  t.equal((await runGatehouse(['vmcp', 'validate', '-c', '/no/such'])).code, 2)
})

t.test('validate and serve warn about valid but unusual workflow settings', async (t) => {
  const workflow = `{name: flow, steps: [{id: a, tool: x.y, condition: "((((", arguments: {q: {deep: "{{.params.x}}"}}, defaultResults: "{{.params.x}}"}]}`
  const text = `name: x\ngroupRef: g\nincomingAuth: {type: anonymous}\noutgoingAuth: {source: inline}\naggregation: {}\ncompositeTools: [${workflow}]\n`
  const file = join(t.testdir({ 'vmcp.yaml': text }), 'vmcp.yaml')
  const warnings = [
    'compositeTools: flow: {{ in a.q is not evaluated: only strings at the first level are templates (nestedTemplates)',
    'compositeTools: flow: {{ in a.defaultResults is not evaluated: default results cannot contain templates',
    'compositeTools: flow: the condition of a fails in every run: it is a string, but must be true or false',
  ]
  const { code, stderr } = await runGatehouse(['vmcp', 'validate', '-c', file])
  t.equal(code, 0)
  for (const warning of warnings) t.match(stderr, `vmcp.yaml: warning: ${warning}`)
  const running = startGatehouse(['vmcp', 'serve', '-c', file, '--port', '0'])
  t.teardown(() => running.interrupt())
  await running.waitFor(/"url":"(http:[^"]+)"/)
  for (const warning of warnings) t.match(running.output(), warning)
})

t.test('serve: every unusable setting is reported, from flags and from the environment', async (t) => {
  const start = ['vmcp', 'serve', '--group', 'g', '--backend', 'a=http://127.0.0.1:1/mcp']
  const flags = [
    '--port',
    '70000',
    '--session-ttl',
    '-5s',
    '--host',
    '1.2.3',
    '--allowed-origins',
    'https://a.b,https://c.d',
  ]
  const { code, stderr } = await runGatehouse([...start, ...flags], '', {
    ...process.env,
    GATEHOUSE_VMCP_MAX_SESSIONS: '0',
  })
  t.equal(code, 2)
  for (const line of [
    '--port: must be a whole number from 0 to 65535, found "70000"',
    '--session-ttl: must be a non-negative duration such as 30s or 1h30m, found "-5s"',
    '--host: must be an IP address or a host name, found "1.2.3"',
    '--allowed-origins: must be a single origin, scheme://host[:port], without wildcards, found "https://a.b,https://c.d"; repeat the flag for each origin',
    'GATEHOUSE_VMCP_MAX_SESSIONS: must be a whole number from 1 to 1000000, found "0"',
  ])
    t.match(stderr, line)
})

t.test('serve: the session limit applies, and a flag overrides the environment', async (t) => {
  const backend = await startRawBackend()
  t.teardown(() => backend.close())
  const start = ['vmcp', 'serve', '--group', 'g', '--backend', `a=${backend.url}`, '--port', '0']
  const running = startGatehouse([...start, '--max-sessions', '1'], {
    ...process.env,
    GATEHOUSE_VMCP_MAX_SESSIONS: '5',
  })
  t.teardown(() => running.interrupt())
  const [, url = ''] = await running.waitFor(/"url":"([^"]+\/mcp)"/)
  await openSession(url)
  await t.rejects(openSession(url), /503/)
})

t.test('serve without a file or a group, or on a public address without a file, is rejected', async (t) => {
  t.match(await runGatehouse(['vmcp', 'serve']), {
    code: 2,
    stderr: /either --config or --group is required/,
  })
  t.match(await runGatehouse(['vmcp', 'serve', '--group', 'g', '--host', '0.0.0.0']), {
    code: 2,
    stderr: /loopback/,
  })
})

t.test(
  'serve responds, reloads a changed file, keeps running with an invalid one, and ends on a signal',
  async (t) => {
    const backend = await startRawBackend()
    t.teardown(() => backend.close())
    const write = (name: string) =>
      `name: served\ngroupRef: g\nincomingAuth: {type: anonymous}\noutgoingAuth: {source: inline}\naggregation: {}\noperational: {logLevel: debug}\nbackends:\n- {name: ${name}, url: "${backend.url}", transport: streamable-http}\n`
    const dir = t.testdir({ 'vmcp.yaml': write('one') })
    const file = join(dir, 'vmcp.yaml')
    const replace = (text: string): void => {
      writeFileSync(`${file}.new`, text)
      renameSync(`${file}.new`, file)
    }
    const running = startGatehouse(['vmcp', 'serve', '-c', file, '--port', '0'])
    t.teardown(() => running.child.kill('SIGKILL'))
    const [, url = ''] = await running.waitFor(/"url":"(http:[^"]+)"/)
    const session = await openSession(url)
    const stream = await session.listen()
    t.match((await session.request('tools/list')).text, 'one_echo')
    replace(write('two'))
    await stream.next(({ method }) => method === 'notifications/tools/list_changed')
    t.match((await session.request('tools/list')).text, 'two_echo')
    replace('name: [')
    await running.waitFor(/the new configuration cannot be used/)
    t.match((await session.request('tools/list')).text, 'two_echo')
    t.match(running.output(), '"stack"', 'as at debug level')
    stream.close()
    const exit = once(running.child, 'exit')
    running.child.kill('SIGTERM')
    t.same(await exit, [0, null])
    t.match(running.output(), 'virtual MCP server stopped')
  },
)

t.test('quick mode serves backends named on the command line', async (t) => {
  const backend = await startRawBackend()
  const running = startGatehouse([
    'vmcp',
    'serve',
    '--group',
    'demo',
    '--backend',
    `raw=${backend.url}`,
    '--port',
    '0',
  ])
  t.teardown(async () => {
    await running.interrupt()
    await backend.close()
  })
  const [, url = ''] = await running.waitFor(/"url":"(http:[^"]+)"/)
  t.match((await (await openSession(url)).request('tools/list')).text, 'raw_echo')
})

t.test('serve --optimizer: clients see the search tools, and find the other tools by words', async (t) => {
  const backend = await startRawBackend()
  const running = startGatehouse([
    ...['vmcp', 'serve', '--group', 'demo', '--backend', `raw=${backend.url}`],
    ...['--port', '0', '--optimizer'],
  ])
  t.teardown(async () => {
    await running.interrupt()
    await backend.close()
  })
  const [, url = ''] = await running.waitFor(/"url":"(http:[^"]+)"/)
  const session = await openSession(url)
  const { text } = await session.request('tools/list')
  t.match(text, 'find_tool')
  t.notMatch(text, 'raw_echo')
  const found = await session.request('tools/call', {
    name: 'find_tool',
    arguments: { tool_description: 'echo' },
  })
  t.match(found.text, 'raw_echo')
})

t.test('serve: a console port that is in use ends the command, and the server with it', async (t) => {
  const taken = createServer()
  await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done))
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const text = `name: x
groupRef: g
incomingAuth: {type: anonymous}
outgoingAuth: {source: inline}
aggregation: {}
console:
  enabled: true
  host: 127.0.0.1
  port: ${port}
  publicUrl: https://console.example
  auth: {type: oidc, issuer: "https://issuer.example", clientId: console}
  roles: [{role: viewer, claim: groups, values: [team]}]
`
  const file = join(t.testdir({ 'vmcp.yaml': text }), 'vmcp.yaml')
  const { code, stderr } = await runGatehouse(['vmcp', 'serve', '-c', file, '--port', '0'])
  t.equal(code, 1)
  t.match(stderr, /EADDRINUSE/)
})

t.test('serve: a port that is in use ends the command, even with backends', async (t) => {
  const backend = await startRawBackend()
  const taken = createServer()
  await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done))
  t.teardown(() => taken.close())
  t.teardown(() => backend.close())
  const { port } = taken.address() as AddressInfo
  for (const more of [[], ['--workers', '2']]) {
    const { code, stderr } = await runGatehouse([
      ...['vmcp', 'serve', '--group', 'g', '--backend', `raw=${backend.url}`, '--port', String(port)],
      ...more,
    ])
    t.equal(code, 1)
    t.match(stderr, `Error: failed to start the virtual server: --port: ${port} on 127.0.0.1 is in use`)
  }
})
