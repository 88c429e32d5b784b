/**
 * The pages that a user of `gatehouse up` sees in a browser, in Chromium: sign-ins, and pictures of the console and of
 * the last page of a sign-in. Each page is checked with axe-core in every size and color scheme.
 */
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { checkAccessibility, show } from '../helpers/console/console-page.ts'

const looks = {
  '1440-light': { viewport: { width: 1440, height: 900 }, colorScheme: 'light' },
  '1440-dark': { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' },
  '390-light': { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
  '390-dark': { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
} as const

/** The docs show each page in one wide and one narrow look. */
const shown: ReadonlySet<string> = new Set([
  'up-console-1440-light',
  'up-console-390-dark',
  'up-sign-in-1440-dark',
  'up-sign-in-390-light',
])

/** Throws instead of failing a test. */
const check = {
  same(found: unknown, wanted: unknown, message?: unknown): boolean {
    if (JSON.stringify(found) !== JSON.stringify(wanted))
      throw new Error(`${String(message)}: ${JSON.stringify(found, undefined, 2)}`)
    return true
  },
}

export interface Pages {
  /** Takes pictures of the console's overview. */
  showConsole(address: string, name: string): Promise<void>
  /** Follows a sign-in address through the provider's forms, and takes pictures of the page "You are signed in". */
  signIn(address: string, account: string, name: string): Promise<void>
}

/** `folder` receives the pictures. Without it, the pages are opened and checked only. */
export async function openPages(
  scope: { readonly teardown: (close: () => unknown) => void },
  folder: string | undefined,
): Promise<Pages> {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  scope.teardown(() => browser.close())
  return {
    async showConsole(address, name) {
      const page = await openPage(browser)
      await page.goto(address)
      await page.getByText('Live', { exact: true }).waitFor()
      await show(page, '#/overview', 'Overview')
      await page.getByRole('row', { name: /mail/ }).waitFor()
      await takePictures(page, name, folder)
    },
    async signIn(address, account, name) {
      const page = await openPage(browser)
      await page.goto(address)
      for (let step = 0; step < 12; step++) {
        if ((await page.title()).includes('You are signed in')) break
        const login = page.locator('input[name=login]')
        if ((await login.count()) > 0) {
          await login.fill(account)
          await page.locator('input[name=password]').fill('secret')
        }
        const before = page.url()
        await Promise.all([
          page.waitForURL((next) => next.href !== before),
          page.locator('button[type=submit]').first().click(),
        ])
      }
      await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
      await takePictures(page, name, folder)
    },
  }
}

async function openPage(browser: Browser): Promise<Page> {
  return (await browser.newContext({ reducedMotion: 'reduce' })).newPage()
}

/** Checks the page in every look, and takes its picture. */
async function takePictures(page: Page, name: string, folder: string | undefined): Promise<void> {
  for (const [look, { viewport, colorScheme }] of Object.entries(looks)) {
    await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme })
    await checkAccessibility(check, page, `${name}-${look}`)
    const wider = 'document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth'
    check.same(await page.evaluate(wider), 0, `${name}-${look} fits`)
    if (folder !== undefined && shown.has(`${name}-${look}`))
      await page.screenshot({ path: join(folder, `${name}-${look}.png`) })
  }
  await page.context().close()
}
