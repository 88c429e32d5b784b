/**
 * Example servers of the MCP Apps project, rendered by its host library in a real Chromium through a virtual server.
 * Both servers use the same address for their pages and the same name for their tools.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import { startTokenIssuer } from '../helpers/authserver/token-issuer.ts'
import { type Peer, Recorder } from '../helpers/conformance/record.ts'
import { exampleFolder, startAppExample } from '../helpers/mcp/app-examples.ts'
import { startTestVmcp } from '../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const recorder = new Recorder('apps')
const examples = ['vanillajs', 'preact'] as const
/** Serves the page with the host library. Returns its origin. */
async function serveHost(t: Test): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: ['test/fixtures/apps/host.js'],
    bundle: true,
    format: 'iife',
    write: false,
    logLevel: 'warning',
  })
  const script = outputFiles[0]?.text ?? ''
  const server = createServer(({ url }, res) => {
    const isScript = url === '/host.js'
    res.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8')
    res.end(isScript ? script : '<!doctype html><title>host</title><body><script src="host.js"></script>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

interface ShownTool {
  readonly name: string
  readonly page?: string
}

for (const mode of ['auto', 'legacy'] as const)
  t.test(`apps: two example servers with the same address, ${mode}`, { skip: missingBrowser }, async (t) => {
    const origin = await serveHost(t)
    const issuer = await startTokenIssuer()
    t.teardown(() => issuer.close())
    const { incomingAuth } = issuer
    const [vanillajs, preact] = [await startAppExample(t, 'vanillajs'), await startAppExample(t, 'preact')]
    const vmcp = await startTestVmcp({ vanillajs, preact }, { incomingAuth }, { allowedOrigins: [origin] })
    t.teardown(() => vmcp.close())
    const browser = await openBrowser(t)
    const page = await browser.newPage()
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(error.message))
    await page.goto(origin)
    const tools = await inHost<ShownTool[]>(page, 'connect', vmcp.url, mode, await issuer.token('ana'))
    t.same(
      tools,
      examples
        .toSorted()
        .map((name) => ({ name: `${name}_get-time`, page: `ui://${name}/get-time/mcp-app.html` })),
    )

    t.equal(vmcp.view.sessionCount(), mode === 'auto' ? 0 : 1)

    for (const example of examples) {
      const before = callsOf()
      const html = await inHost<string>(
        page,
        'show',
        `${example}_get-time`,
        `ui://${example}/get-time/mcp-app.html`,
      )
      t.equal(html, readFileSync(`${exampleFolder(example)}/mcp-app.html`, 'utf8'), 'the page is unchanged')
      const app = page.frameLocator(`iframe[title="${example}_get-time"]`)
      const time = app.locator('code').first()
      await time.filter({ hasText: /^\d{4}-/ }).waitFor()
      const first = await time.textContent()
      await app.getByRole('button', { name: 'Get Server Time' }).click()
      await time.filter({ hasText: /^\d{4}-/, hasNotText: first ?? '' }).waitFor()
      // One read of the page, one call by the host, and one call by the page.
      for (const name of examples)
        t.equal(callsOf()[name], (before[name] ?? 0) + (name === example ? 3 : 0), `requests to ${name}`)
    }
    t.same(errors, [])
    recorder.addTested(t, {
      client: { name: 'MCP Apps host library', era: eraOf[mode], transport: 'streamable HTTP' },
      through: 'vMCP',
      server: { name: 'MCP Apps example servers', era: 'session', transport: 'streamable HTTP' },
      operations: ['show two pages with the same address', 'call tools from the pages'],
    })

    function callsOf(): Readonly<Record<string, number>> {
      return Object.fromEntries(vmcp.view.backends().map(({ name, calls }) => [name, calls.calls]))
    }
  })

t.test('the conformance page shows these results', { skip: missingBrowser }, async (t) => recorder.compare(t))

const eraOf = { auto: 'stateless', legacy: 'session' } as const satisfies Record<string, Peer['era']>

function inHost<T>(page: Page, method: 'connect' | 'show', ...args: readonly string[]): Promise<T> {
  return page.evaluate<T>(`host.${method}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`)
}
