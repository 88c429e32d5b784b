/** The console in a real Chromium: pages that note every complaint and every request, and the accessibility check. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'

export interface ConsolePage {
  readonly page: Page
  /** Errors of the console, refusals by the content security policy among them. */
  readonly complaints: string[]
  /** Addresses of all requests. */
  readonly requested: string[]
}

export async function openConsole(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const seen: ConsolePage = { page, complaints: [], requested: [] }
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.complaints.push(message.text())
  })
  page.on('pageerror', (error) => seen.complaints.push(error.message))
  page.on('request', (request) => seen.requested.push(request.url()))
  await page.goto(url)
  return seen
}

/** Goes to a page of the console, and waits for its heading and for what it loads. */
export async function show(page: Page, hash: string, heading: string | RegExp): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  await page.locator('.loading').waitFor({ state: 'detached' })
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

/** Fails for each violation that axe-core finds in what is shown now. */
export async function checkAccessibility(t: Pick<Test, 'same'>, page: Page, what: string): Promise<void> {
  // The devtools protocol evaluates it, so the page's policy stays as it is.
  await page.evaluate(axe)
  const { violations } = await page.evaluate<AxeResult>('axe.run()')
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  )
  t.same(found, [], `${what}: axe-core finds nothing`)
}
