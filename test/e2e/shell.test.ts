/**
 * Runs `gatehouse tools`, `resources` and `prompts` with a user's command lines, on real servers of both eras, by URL,
 * by command, and by the name of a server of `gatehouse run`.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startOidcProvider, walk } from '../helpers/authserver/oidc-provider.ts'
import { startRun } from '../helpers/clients/run-rig.ts'
import { freePort, runGatehouse, startGatehouse } from '../helpers/gatehouse.ts'
import { startEverything } from '../helpers/mcp/everything.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { missingTerminal, startOnTerminal } from '../helpers/terminal.ts'

t.setTimeout(300_000)

const everything = ['node', 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'] as const
const program = ['node', 'test/helpers/mcp/fixture-server/stdio-program.ts'] as const

await t.test('tools: uses a server from npm over streamable HTTP, HTTP+SSE, and as a command', async (t) => {
  const http = await startEverything(t, 'streamableHttp')
  const sse = await startEverything(t, 'sse')
  for (const [target, command] of [
    [[http.url], []],
    [[sse.url], []],
    [[], ['--', ...everything]],
  ] as const) {
    const list = await runGatehouse(['tools', 'list', ...target, ...command])
    t.match(list, { code: 0, stdout: /^get-sum a=<number> b=<number>\n {4}Returns the sum/m, stderr: '' })
    const json = await runGatehouse(['tools', 'list', ...target, '-o', 'json', ...command])
    const { tools } = JSON.parse(json.stdout) as { tools: { name: string }[] }
    t.ok(tools.some(({ name }) => name === 'echo'))
    const call = await runGatehouse(['tools', 'call', ...target, 'get-sum', 'a=1', 'b=2', ...command])
    t.match(call, { code: 0, stdout: 'The sum of 1 and 2 is 3.\n', stderr: '' })
  }
  const read = await runGatehouse([
    ...['resources', 'read', http.url, 'demo://resource/static/document/architecture.md'],
  ])
  t.match(read, { code: 0, stdout: /Everything Server/i })
  const prompt = await runGatehouse(['prompts', 'get', http.url, 'args-prompt', 'city=Bern'])
  t.match(prompt, { code: 0, stdout: /^user: .*Bern/ })
  t.match(await runGatehouse(['prompts', 'list', http.url]), {
    stdout: /^args-prompt city=<string> \[state=<string>\]$/m,
  })
})

await t.test('tools call: accepts arguments in several forms', async (t) => {
  const { url } = await startEverything(t, 'streamableHttp')
  const call = (...words: string[]) => runGatehouse(['tools', 'call', url, ...words])
  const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-args-')), 'args.json')
  writeFileSync(file, '{"a":40,"b":1}')
  t.match(
    await call('get-sum', '--args-file', file, 'b=2'),
    { stdout: /40 and 2 is 42/ },
    'pairs take precedence',
  )
  const piped = await runGatehouse(['tools', 'call', url, 'get-sum', '--args', '-'], '{"a":1,"b":1}')
  t.match(piped, { code: 0, stdout: /is 2/ })
  t.match(
    await call('echo', 'message=a=b c'),
    { stdout: 'Echo: a=b c\n' },
    'the value is everything after the first =',
  )
  t.match(await call('get-sum', 'a:=1', 'b:=2'), { stdout: /is 3/ })
  for (const [words, message] of [
    [['get-sum', 'a=one', 'b=2'], /^Error: a: must be number, as the tool’s schema requires\n$/],
    [['get-sum', 'a:=x'], /a: the value after := must be JSON/],
    [['get-sum', 'a=1', 'a=2'], /a: occurs twice/],
    [['get-sum', '=1'], /"=1": must be name=value/],
    [['get-sum', '--args', '[1]'], /--args: must be a JSON object such as/],
    [['get-sum', '--args', '{"a":1,"a":2}'], /--args: a member occurs twice/],
    [['get-sum', '--args', '{"a":tru}'], /--args: must be a JSON object/],
    [['get-sum', '--args', '{}', '--args-file', file], /cannot be combined/],
    [['get-sum', '--args-file', '/nonexistent'], /--args-file: cannot read \/nonexistent: file not found/],
    [['get_sum', 'a=1'], /the server has no tool "get_sum"; did you mean get-sum\?\n$/],
    [
      ['no-such', 'a=1'],
      /the server has no tool "no-such"; it has \d+ tools; list them with gatehouse tools list\n$/,
    ],
    [[], /TOOL is missing after TARGET/],
  ] as const) {
    const ended = await call(...words)
    t.match(ended, { code: 2, stdout: '', stderr: message }, words.join(' '))
  }
})

await t.test('tools call: sends JSON as typed, and prints JSON as the server wrote it', async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const { code, stdout } = await runGatehouse([
    ...[
      'tools',
      'call',
      fixture.url,
      'test_simple_text',
      '--args',
      '{"n":12345678901234567890}',
      '-o',
      'json',
    ],
  ])
  t.equal(code, 0)
  t.match(JSON.parse(stdout), { content: [{ type: 'text' }] })
  const failed = await runGatehouse(['tools', 'call', fixture.url, 'test_error_handling'])
  t.match(failed, { code: 1, stdout: '', stderr: /^Error: / })
  const image = await runGatehouse(['tools', 'call', fixture.url, 'test_image_content'])
  t.match(image, { code: 0, stdout: /^\[image image\/png, \d+ bytes; use -o json to print it\]\n$/ })
})

for (const era of ['session', 'stateless', 'both'] as const) {
  await t.test(`both eras: a ${era} server by URL and as a command`, async (t) => {
    const fixture = await startFixture({ era })
    t.teardown(() => fixture.close())
    for (const [target, command] of [
      [[fixture.url], []],
      [[], ['--', ...program, era]],
    ] as const) {
      const call = (...words: string[]) => runGatehouse(['tools', 'call', ...target, ...words, ...command])
      const text = await call('test_simple_text')
      t.match(text, { code: 0, stdout: /simple text/ })
      const slow = await call('test_tool_with_progress')
      t.match(slow, { code: 0, stderr: /^50\/100 50 %/m }, 'progress on standard error')
      const asked = await call('test_elicitation', 'message=Your name?')
      t.match(asked, { stderr: /asks: Your name\?\. Declined, because there is no terminal/ })
      t.match(asked.stdout, /decline/)
      const mirrored = await runGatehouse(['tools', 'list', ...target, '-o', 'json', ...command])
      t.match(mirrored, { code: 0, stderr: '' })
      const read = ['resources', 'read', ...target, 'test://static-binary']
      const { stdout } = await runGatehouse([...read, '-o', 'json', ...command])
      t.match(JSON.parse(stdout), { contents: [{ blob: /./ }] })
    }
  })
}

await t.test('elicitation: prompts on a terminal, field by field', { skip: missingTerminal }, async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const terminal = startOnTerminal([
    ...['tools', 'call', fixture.url, 'test_elicitation', 'message=Who \u001b[2Jare you?'],
  ])
  t.teardown(() => terminal.child.kill())
  await terminal.waitFor(/asks: Who are you\?/u)
  await terminal.waitFor(/username \(text\): /)
  terminal.type('ann\r')
  await terminal.waitFor(/email \(text\): /)
  terminal.type('ann@example.com\r')
  t.equal(await terminal.ended(), 0)
  t.match(terminal.output(), /action=accept, content=\{"username":"ann","email":"ann@example.com"\}/)
  t.notMatch(terminal.output(), '\u001b[2J', 'text from a server does not control the terminal')
})

await t.test(
  'a server that requires a login: exit code 3 without one, then one login with the proxy',
  async (t) => {
    const fixture = await startFixture()
    t.teardown(() => fixture.close())
    const port = String(await freePort())
    const url = `http://127.0.0.1:${port}/mcp`
    const idp = await startOidcProvider({ resources: { [url]: {} } })
    t.teardown(() => idp.close())
    const guard = startGatehouse([
      ...['proxy', '--target-uri', new URL(fixture.url).origin, '--port', port],
      ...['--oidc-issuer', idp.issuer, '--oidc-audience', url, 'guard'],
    ])
    t.teardown(() => guard.interrupt())
    await guard.waitFor(/started/)
    const env = { ...process.env, GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'gatehouse-login-')) }
    const without = await runGatehouse(['tools', 'call', url, 'test_simple_text'], '', env)
    t.match(without, { code: 3, stdout: '', stderr: /^Error: .*sign in with --remote-auth/ })
    const words = ['tools', 'call', url, 'test_simple_text', '--remote-auth', '--remote-auth-skip-browser']
    const calling = startGatehouse([...words, '--remote-auth-callback-port', '0'], env)
    const [address = ''] = await calling.waitFor(/http:\/\/127\.0\.0\.1:\d+\/auth\?\S+/)
    const redirect = await walk(address, 'http://localhost:')
    await fetch(redirect)
    await calling.waitFor(/simple text/)
    const again = await runGatehouse(words, '', env)
    t.match(again, { code: 0, stdout: /simple text/, stderr: '' }, 'the next call uses the login')
  },
)

await t.test('TARGET accepts the name of a server of gatehouse run', async (t) => {
  const temp = mkdtempSync(join(tmpdir(), 'gatehouse-shell-'))
  const env = { ...process.env, TMPDIR: temp, KUBECONFIG: '/nonexistent', HOME: temp }
  const { running } = await startRun(t, ['--name', 'some', '--', ...everything], env)
  const viaServer = await runGatehouse(['tools', 'call', 'some', 'echo', 'message=hi'], '', env)
  t.match(viaServer, { code: 0, stdout: 'Echo: hi\n' })
  const viaGateway = await runGatehouse(['tools', 'call', 'gatehouse', 'echo', 'message=hi'], '', env)
  t.match(viaGateway, { code: 0, stdout: 'Echo: hi\n' })
  const words = await runGatehouse(['__complete', '--', 'tools', 'call', 'so'], '', env)
  t.match(words.stdout, /^some\t/m, 'completion lists the names')
  const other = await runGatehouse(['tools', 'list', 'other'], '', env)
  t.match(other, {
    code: 2,
    stderr:
      /^Error: no server named other is running on this machine; running on this machine: gatehouse, some\nIn the /,
  })
  await running.interrupt()
  t.match(await runGatehouse(['tools', 'list', 'some'], '', env), { code: 2 }, 'removed with the session')
})

await t.test('each failure has one message and an exit code', async (t) => {
  const port = await freePort()
  for (const [args, code, message] of [
    [['tools', 'list'], 2, /TARGET is missing/],
    [['tools', 'list', 'ftp://x'], 2, /TARGET: must be/],
    [['tools', 'list', 'http://u:p@127.0.0.1/mcp'], 2, /must not contain credentials/],
    [
      ['tools', 'list', `http://127.0.0.1:${port}/mcp`],
      1,
      /^Error: the server could not be reached; run "gatehouse doctor http/,
    ],
    [
      ['tools', 'list', '--', '/no/such/program'],
      1,
      /^Error: \/no\/such\/program: the command was not found\n$/,
    ],
    [
      ['tools', 'list', '--', 'node', '-e', 'console.error("no licence");process.exit(7)'],
      1,
      /^Error: node: exited with code 7\n {2}no licence\n$/,
    ],
    [['tools', 'list', '--'], 2, /after --, add a command that runs an MCP server/],
    [['tools', 'list', 'x', '--', 'node'], 2, /TARGET and a command cannot be combined/],
    [['tools', 'list', '-e', 'A=1', 'http://127.0.0.1/mcp'], 2, /-e: applies to a command/],
    [
      ['tools', 'list', '--timeout', '1', '--', 'node', '-e', 'setInterval(()=>{},1e6)'],
      1,
      /no message from the server for 1 s/,
    ],
    [['tools', 'list', '-o', 'yaml', 'x'], 2, /Allowed choices are text, json/],
  ] as const) {
    const ended = await runGatehouse(args)
    t.match(ended, { code, stdout: '', stderr: message }, args.join(' '))
  }
})
