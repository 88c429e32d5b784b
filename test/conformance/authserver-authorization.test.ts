/** Runs the official suite's authorization-server mode against the embedded server: no failures and no warnings. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { registerClient, type Rig, startAuthServer } from '../helpers/authserver/authserver.ts'
import { Browser } from '../helpers/authserver/cookie-browser.ts'
import { Recorder } from '../helpers/conformance/record.ts'
import { readResults, suiteProgram } from '../helpers/conformance/suite.ts'
import { freePort } from '../helpers/gatehouse.ts'

/** Runs the suite and acts as the user at the URL that it prints. */
async function run(
  rig: Rig,
  clientId: string,
  port: number,
  out: string,
): Promise<{ code: number | null; output: string }> {
  const args = [
    suiteProgram,
    'authorization',
    '--url',
    rig.issuer,
    '--client-id',
    clientId,
    '-p',
    String(port),
    '-o',
    out,
  ]
  const child = spawn(process.execPath, [...args, '--resource', rig.resource], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  let walked = false
  const look = (line: string): void => {
    lines.push(line)
    const url = new RegExp(`${rig.issuer}/oauth/authorize\\S*`).exec(line)?.[0]
    if (url === undefined || walked) return
    walked = true
    void walk(url)
  }
  async function walk(url: string): Promise<void> {
    const browser = new Browser()
    const page = await browser.open(url)
    if (page.text.includes('<form')) await browser.press(page, 'approve')
  }
  createInterface({ input: child.stdout }).on('line', look)
  createInterface({ input: child.stderr }).on('line', look)
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  return { code, output: lines.join('\n') }
}

const recorder = new Recorder('authserver-authorization')

t.test('conformance: authorization mode passes', async (t) => {
  const rig = await startAuthServer(t, {
    config: { cimd: { cacheMaxSize: 1, cacheTtlMs: 1000, allowLoopback: false } },
  })
  const port = await freePort()
  const clientId = await registerClient(rig, { redirect_uris: [`http://127.0.0.1:${port}/callback`] })
  const out = mkdtempSync(join(tmpdir(), 'gatehouse-conformance-'))
  t.teardown(() => rmSync(out, { recursive: true, force: true }))
  const { code, output } = await run(rig, clientId, port, out)
  t.equal(code, 0, output)
  const scenarios = readResults(out)
  t.ok(scenarios.size > 0, 'scenarios ran')
  for (const [name, { failed }] of scenarios) t.same(failed, [], name)
  recorder.addRun({ title: 'embedded authorization server', mode: 'authorization' }, scenarios)
})

t.test('the conformance page shows these results', async (t) => recorder.compare(t))
