/** The console in a real Chromium: pages that record every error and request, and the accessibility check. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

export interface ConsolePage {
  readonly page: Page
  /** Console errors, including violations of the content security policy. */
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

/** Opens a page of the console, and waits for its heading and its data. */
export async function show(page: Page, hash: string, heading: string | RegExp): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  await page.locator('.loading').waitFor({ state: 'detached' })
}

/**
 * Waits until an expression is true in the page. Playwright's waitForFunction evaluates again inside the page once the
 * first result is false, which the page's policy blocks.
 */
export async function waitUntil(page: Page, expression: string): Promise<void> {
  for (let turn = 0; turn < 600; turn++) {
    if (await page.evaluate<boolean>(expression)) return
    await page.waitForTimeout(50)
  }
  throw new Error(`it never came to ${expression}`)
}

/** Waits until a table has the given number of rows below its header. */
export async function waitForRows(page: Page, table: string, count: number): Promise<void> {
  const rows = `document.querySelectorAll('table[aria-label="${table}"] > tbody > tr').length`
  await waitUntil(page, `${rows} === ${count}`)
}

/** Waits until the expression is true for `focus`, the focused element. */
export async function waitForFocus(page: Page, expression: string): Promise<void> {
  await waitUntil(page, `((focus) => ${expression})(document.activeElement)`)
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

/** Fails for each violation that axe-core finds on the current page. */
export async function checkAccessibility(
  t: { readonly same: (found: unknown, wanted: unknown, message: string) => unknown },
  page: Page,
  what: string,
): Promise<void> {
  // Evaluated through the DevTools protocol, so the page's policy stays in force.
  await page.evaluate(axe)
  const { violations } = await page.evaluate<AxeResult>('axe.run()')
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  )
  t.same(found, [], `${what}: axe-core finds nothing`)
}
