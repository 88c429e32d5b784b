/** `gatehouse doctor` as a command: exit codes, both output formats, invalid usage. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { startStage } from '../../helpers/doctor/staged.ts'
import { startEverything } from '../../helpers/mcp/everything.ts'

t.setTimeout(180_000)

await t.test('a healthy real server: exit code 0, directly and through the proxy', async (t) => {
  const everything = await startEverything(t, 'streamableHttp')
  const direct = await runGatehouse(['doctor', everything.url])
  t.equal(direct.code, 0, direct.stdout + direct.stderr)
  t.match(direct.stdout, /ok +session +initialize, tools/)

  const proxy = startGatehouse(['proxy', '--target-uri', everything.origin, '--port', '0', 'everything'])
  t.teardown(() => proxy.interrupt())
  const [, url = ''] = await proxy.waitFor(/(http:\/\/127\.0\.0\.1:\d+)/)
  const through = await runGatehouse(['doctor', `${url}/mcp`, '-o', 'json'])
  t.equal(through.code, 0, through.stdout + through.stderr)
  const report: unknown = JSON.parse(through.stdout)
  t.match(report, { schema: 'gatehouse.dev/doctor/v1', result: 'ok', firstFailure: null })
})

await t.test('a failing hop: exit code 1, and both outputs name it', async (t) => {
  const stage = await startStage({ challenge: () => undefined })
  t.teardown(() => stage.close())
  const text = await runGatehouse(['doctor', stage.url])
  t.equal(text.code, 1)
  t.match(text.stdout, 'First failure: challenge.missing')
  t.match(text.stdout, /fix +Send the header with every 401/)
  t.match(text.stdout, /try +curl -si http/)
  const json = await runGatehouse(['doctor', stage.url, '-o', 'json'])
  t.equal(json.code, 1)
  const report: unknown = JSON.parse(json.stdout)
  t.match(report, {
    result: 'failed',
    firstFailure: { target: stage.url, hop: 'MCP endpoint', id: 'challenge', code: 'challenge.missing' },
  })
})

await t.test('warnings cause a failure only on request', async (t) => {
  const stage = await startStage({ challenge: () => 'Bearer' })
  t.teardown(() => stage.close())
  t.equal((await runGatehouse(['doctor', stage.url])).code, 0)
  t.equal((await runGatehouse(['doctor', stage.url, '--fail-on', 'warning'])).code, 1)
})

await t.test('invalid usage: exit code 2 and one clear line', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-doctor-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const twoTokens = join(folder, 'token')
  writeFileSync(twoTokens, 'one two')
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /specify one of: the URL or the name of an MCP server/],
    [['http://127.0.0.1:1/mcp', '--client', 'cursor'], /specify one of/],
    [['--redis', 'redis://:secret@127.0.0.1:6379'], /must not contain a password/],
    [['--redis', 'http://127.0.0.1'], /must be redis:\/\/host:port/],
    [['-f', join(folder, 'absent')], /no such file or folder/],
    [['mcp.example.com'], /mcp\.example\.com is not an http or https URL/],
    [['ftp://mcp.example.com'], /must start with http/],
    [['https://me:secret@mcp.example.com/mcp'], /must not contain credentials/],
    [['http://127.0.0.1:1/mcp', '--provider', 'nobody'], /unknown provider; expected one of entra, okta/],
    [['http://127.0.0.1:1/mcp', '--token-file', join(folder, 'none')], /--token-file: cannot read .*none/],
    [['http://127.0.0.1:1/mcp', '--token-file', twoTokens], /a single token of visible ASCII characters/],
    [['http://127.0.0.1:1/mcp', '--origin', 'app.example.com'], /--origin: must be an origin/],
    [['http://127.0.0.1:1/mcp', '--timeout', '0'], /whole number from 1 to 120/],
    [['http://127.0.0.1:1/mcp', '-o', 'yaml'], /text, json/],
  ]
  for (const [args, message] of rows) {
    const { code, stdout, stderr } = await runGatehouse(['doctor', ...args])
    t.equal(code, 2, args.join(' '))
    t.match(stderr, message)
    t.notMatch(stdout + stderr, 'secret')
  }
})
