/**
 * Runs the commands in the section "Try it on one machine" of the authorization server guide word for word. The user
 * signs in with a real browser.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import type { Browser } from 'playwright-core'
import t, { type Test } from 'tap'
import { missingBrowser, openBrowser } from '../../helpers/authserver/signed-in-client.ts'
import { CommandProcess, makeWorkspace } from '../../helpers/docs/run-session.ts'
import { insideNamespaces, isInsideNamespaces, nodeMissing } from '../../helpers/kube/node/index.ts'

const page = 'docs/guides/authorization-server.md'
const [, section = ''] = readFileSync(page, 'utf8').split('\n## Try it on one machine\n')
const blocks = [...(section.split('\n## ')[0] ?? '').matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(
  ([, text = '']) => text,
)

/** Accepts the certificate, signs in as alice in each form and approves, until the browser returns to the client. */
async function signIn(browser: Browser, address: string): Promise<readonly string[]> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const tab = await context.newPage()
  const hosts: string[] = []
  await tab.goto(address)
  for (let step = 0; step < 12 && !tab.url().includes('/callback?'); step += 1) {
    const url = tab.url()
    hosts.push(new URL(url).host)
    const name = tab.locator('input[name=login]')
    if ((await name.count()) > 0) {
      await name.fill('alice')
      await tab.locator('input[name=password]').fill('any')
    }
    const approve = tab.locator('button[value=approve]')
    const button = (await approve.count()) > 0 ? approve : tab.locator('button[type=submit]').first()
    await Promise.all([tab.waitForURL((next) => next.href !== url), button.click()])
  }
  await context.close()
  return hosts
}

async function scenario(t: Test): Promise<void> {
  t.setTimeout(240_000)
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  t.equal(blocks.length, 4)
  const workspace = makeWorkspace(t, { name: 'local login', steps: [] })
  workspace.env['PATH'] = [dirname(process.execPath), workspace.env['PATH']].join(delimiter)
  for (const [index, ready] of [/Identity provider: /, /3001/, /virtual MCP server listening/].entries()) {
    const started = new CommandProcess(blocks[index] ?? '', workspace)
    t.teardown(() => started.interrupt())
    t.ok(await started.waitForOutput(ready), String(ready), { output: started.output })
  }
  const client = new CommandProcess(blocks[3] ?? '', workspace)
  t.teardown(() => client.interrupt())
  t.ok(
    await client.waitForOutput(/http:\/\/127\.0\.0\.1:4483\/oauth\/authorize\?\S+\s/),
    'prints the login address',
    {
      output: client.output,
    },
  )
  const address = /http:\/\/127\.0\.0\.1:4483\/oauth\/authorize\?\S+/.exec(client.output)?.[0] ?? ''
  const browser = await openBrowser(t)
  const hosts = await signIn(browser, address)
  t.ok(hosts.includes('127.0.0.1:4483'), 'the user approves the client at the virtual server')
  t.ok(hosts.includes('127.0.0.1:9400'), 'the user signs in at the identity provider')
  t.equal(await client.exitCode, 0, 'the command succeeds', { output: client.output })
  t.match(client.output, /^everything_echo message=<string>$/m)
}

t.setTimeout(240_000)
const missing = nodeMissing() || missingBrowser

if (missing) t.test('the local login', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('the local login', scenario)
else await insideNamespaces(t, import.meta.filename)
