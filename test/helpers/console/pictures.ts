/**
 * Takes the screenshots of the console for the docs from a real run: `gatehouse dev` with the quickstart's servers,
 * real calls, and Chromium. `make pictures` writes them to docs/images.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { freePort, startGatehouse } from '../gatehouse.ts'
import { show } from './console-page.ts'

const root = resolve(import.meta.dirname, '../../..')
const folder = join(root, 'docs/images')
const desktop = { viewport: { width: 1120, height: 700 } }
const phone = { viewport: { width: 360, height: 700 } }

mkdirSync(folder, { recursive: true })
const port = await freePort()
const extra = mkdtempSync(join(tmpdir(), 'gatehouse-pictures-'))
writeFileSync(join(extra, 'warehouse.yaml'), JSON.stringify(await lostServer()))
const manifests = ['-f', join(root, 'manifests/examples/quickstart'), '-f', extra]
const dev = startGatehouse(['dev', ...manifests, '--port', String(port)])
let browser: Browser | undefined
try {
  const [, url = ''] = await dev.waitFor(/console(?:: | at )(http:\S+#launch=\S+)/)
  await makeCalls(`http://127.0.0.1:${port}/mcp`)
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  await picture('console-overview', { ...desktop, colorScheme: 'light' }, url, async (page) => {
    await show(page, '#/overview', 'Overview')
    await page.getByRole('row', { name: /warehouse.*unhealthy/ }).waitFor()
  })
  await picture('console-calls', { ...desktop, colorScheme: 'dark' }, url, async (page) => {
    await show(page, '#/calls', 'Calls')
    await page
      .getByRole('row', { name: /failed/ })
      .first()
      .getByRole('button')
      .click()
    await page.locator('.details').waitFor()
  })
  await picture('console-try', { ...desktop, colorScheme: 'light' }, url, async (page) => {
    await show(page, '#/tools/everything_get-sum/try', 'everything_get-sum')
    await page.getByRole('textbox', { name: /^a / }).fill('19')
    await page.getByRole('textbox', { name: /^b / }).fill('23')
    await page.getByRole('button', { name: 'Run' }).click()
    await page.getByText('success').waitFor()
  })
  await picture('console-phone', { ...phone, colorScheme: 'dark' }, url, async (page) => {
    await show(page, '#/overview', 'Overview')
    await page.getByRole('row', { name: /memory/ }).waitFor()
  })
} finally {
  await browser?.close()
  await dev.interrupt()
  rmSync(extra, { recursive: true, force: true })
}

/** A server that does not respond, so that the screenshots show a failed backend. */
async function lostServer(): Promise<unknown> {
  return {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPServerEntry',
    metadata: { name: 'warehouse' },
    spec: {
      groupRef: { name: 'quickstart' },
      remoteUrl: `http://127.0.0.1:${await freePort()}/mcp`,
      transport: 'streamable-http',
      allowPrivateEndpoint: true,
    },
  }
}

/** Makes the calls of a typical team: most succeed, some fail. */
async function makeCalls(address: string): Promise<void> {
  const client = new Client({ name: 'claude-code', version: '2.1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(address)))
  const call = (name: string, args: Readonly<Record<string, unknown>>): Promise<unknown> =>
    client.callTool({ name, arguments: { ...args } }).catch(() => undefined)
  for (let i = 0; i < 12; i++) {
    await call('everything_echo', { message: `call ${i}` })
    await call('memory_search_nodes', { query: 'gateway' })
    await call('files_list_directory', { path: '.' })
  }
  await call('files_read_text_file', { path: '/etc/shadow' })
  await call('everything_get-sum', { a: 'one', b: 2 })
  await call('memory_read_graph', {})
  await client.close()
}

async function picture(
  name: string,
  options: BrowserContextOptions,
  url: string,
  prepare: (page: Page) => Promise<void>,
): Promise<void> {
  if (!browser) return
  const context = await browser.newContext({ ...options, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto(url)
  await page.getByText('Live', { exact: true }).waitFor()
  await prepare(page)
  await page.screenshot({ path: join(folder, `${name}.png`) })
  await context.close()
}
