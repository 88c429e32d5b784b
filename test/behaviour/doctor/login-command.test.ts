/**
 * `gatehouse doctor --login` as a command: without a browser, interrupted, run twice at once, with unsuitable options.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { walk } from '../../helpers/authserver/oidc-provider.ts'
import { lacksIpv6, takePort } from '../../helpers/proxy/taken-port.ts'
import { type Bend, startStage } from '../../helpers/doctor/staged.ts'

t.setTimeout(180_000)

async function stageFor(t: Test, bend: Bend = {}) {
  const stage = await startStage({ verify: { scope: 'read' }, ...bend })
  t.teardown(() => stage.close())
  return stage
}

const address = /Open this address in a browser on this machine: (http\S+)/

/** Follows the printed address to the page that shows the outcome. */
async function browse(url: string): Promise<string> {
  const back = new URL(url).searchParams.get('redirect_uri') ?? ''
  return (await fetch(await walk(url, back))).text()
}

function start(args: readonly string[]) {
  const run = startGatehouse(['doctor', '--login', '--no-browser', ...args])
  let stdout = ''
  run.child.stdout?.on('data', (chunk: string) => (stdout += chunk))
  const ended = once(run.child, 'close').then(() => ({ code: run.child.exitCode, stdout }))
  return { ...run, ended }
}

await t.test(
  'without a browser, the address is printed and standard output contains only the report',
  async (t) => {
    const stage = await stageFor(t)
    const run = start([stage.url, '-o', 'json', '--redirect-uri', 'http://127.0.0.1:0/back'])
    const [, url = ''] = await run.waitFor(address)
    t.match(new URL(url).searchParams.get('redirect_uri'), /^http:\/\/127\.0\.0\.1:\d+\/back$/)
    t.match(await browse(url), 'You are signed in')
    const { code, stdout } = await run.ended
    t.equal(code, 0, stdout)
    const report: unknown = JSON.parse(stdout)
    t.match(report, { result: 'ok', firstFailure: null })
    const state = new URL(url).searchParams.get('state') ?? 'none'
    t.notMatch(stdout, state)
    t.notMatch(run.output(), /eyJ/)
  },
)

await t.test('two at once: the second one uses another port', async (t) => {
  const stage = await stageFor(t)
  const runs = [start([stage.url]), start([stage.url])]
  const urls = await Promise.all(runs.map(async (run) => (await run.waitFor(address))[1] ?? ''))
  const [one, two] = urls.map((url) => new URL(url).searchParams.get('redirect_uri'))
  t.not(one, two)
  await Promise.all(urls.map(browse))
  for (const run of runs) t.match(await run.ended, { code: 0 })
})

await t.test('Ctrl-C during the login: reported, cleaned up, exit code 1', async (t) => {
  const stage = await stageFor(t)
  const run = start([stage.url])
  await run.waitFor(/Waiting up to 300 s for the browser to return/)
  run.child.kill('SIGINT')
  const { code, stdout } = await run.ended
  t.equal(code, 1)
  t.match(stdout, 'First failure: doctor.interrupted')
  t.match(stdout, 'no tokens were issued, the client is deleted')
})

await t.test('a login that is not completed in time is reported', async (t) => {
  const stage = await stageFor(t)
  const { code, stdout } = await start([stage.url, '--login-timeout', '1']).ended
  t.equal(code, 1)
  t.match(stdout, 'First failure: login.timeout')
})

await t.test('a port of a registered redirect URI that is in use is reported', async (t) => {
  const stage = await stageFor(t)
  for (const taken of ['127.0.0.1', '::1'] as const) {
    if (taken === '::1' && lacksIpv6) continue
    const port = await takePort(t, taken)
    const uri = `http://localhost:${port}/callback`
    const { code, stdout } = await start([stage.url, '--client-id', 'x', '--redirect-uri', uri]).ended
    t.equal(code, 1)
    t.match(
      stdout,
      `login.port: port ${port} is in use by another program on ${taken === '::1' ? '[::1]' : taken}`,
    )
  }
})

await t.test('a server that requires no login: no browser is opened', async (t) => {
  const stage = await stageFor(t, { open: true })
  const { code, stdout } = await start([stage.url]).ended
  t.equal(code, 0, stdout)
  t.match(stdout, /skipped +login .*browser/)
  t.notMatch(stdout, 'Open this address')
})

await t.test('invalid usage: exit code 2, and no secret in the message', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-login-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const secret = join(folder, 'secret')
  writeFileSync(secret, 'hidden-value and more\n')
  const url = 'http://127.0.0.1:1/mcp'
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [['--login', '-f', folder], /--login: has no effect with -f/],
    [['--login'], /specify one of: the URL/],
    [
      ['--login', url, '--token-file', secret, '--register'],
      /--token-file: cannot be combined .*\n.*--register: cannot be combined/,
    ],
    [
      ['--login', url, '--client-secret-file', secret],
      /--client-secret-file: has no effect without --login and --client-id/,
    ],
    [['--login', url, '--redirect-uri', 'https://localhost:1/cb'], /must be http on localhost/],
    [['--login', url, '--redirect-uri', 'http://localhost:1/cb?x=1'], /without query and fragment/],
    [
      [url, '--login-timeout', '5', '--no-browser'],
      /--no-browser: has no effect without --login\n.*--login-timeout: has no effect/,
    ],
    [['--login', url, '--login-timeout', '0'], /whole number from 1 to 3600/],
    [
      ['--login', url, '--client-id', 'x', '--client-secret-file', secret],
      /must contain a single secret of visible/,
    ],
  ]
  for (const [args, message] of rows) {
    const { code, stdout, stderr } = await runGatehouse(['doctor', ...args])
    t.equal(code, 2, args.join(' '))
    t.match(stderr, message)
    t.notMatch(stdout + stderr, 'hidden-value')
  }
})
