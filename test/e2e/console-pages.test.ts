/**
 * Tests the other pages of the console in a real Chromium, and the accessibility, small screens and keyboard use of all
 * pages.
 */
import type { Page } from 'playwright-core'
import t from 'tap'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import {
  checkAccessibility,
  openConsole,
  show,
  waitForFocus,
  waitUntil,
} from '../helpers/console/console-page.ts'
import { connect, fixtureData, overview, page as pageOf } from '../helpers/console/fixture-data.ts'
import { startConsoleFixture } from '../helpers/console/fixture-server.ts'

t.setTimeout(300_000)

/** Hash and heading of each page. */
const pages = [
  ['#/overview', 'Overview'],
  ['#/tools', 'Tools'],
  ['#/tools/github_create_issue', 'github_create_issue'],
  ['#/tools/github_create_issue/input', 'github_create_issue'],
  ['#/tools/github_create_issue/try', 'github_create_issue'],
  ['#/pins', 'Pins'],
  ['#/pins/jira/tool/search', 'search'],
  ['#/calls?open=c8', 'Calls'],
  ['#/sessions', 'Sessions'],
  ['#/tasks', 'Tasks'],
  ['#/policies', 'Policies'],
  ['#/accounts', 'Accounts'],
  ['#/config', 'Config'],
  ['#/connect', 'Connect'],
  ['#/nowhere', 'Page not found'],
] as const

const looks = [
  ['desktop, light', { colorScheme: 'light', viewport: { width: 1280, height: 800 } }],
  ['desktop, dark', { colorScheme: 'dark', viewport: { width: 1280, height: 800 } }],
  [
    'phone, dark, no motion',
    { colorScheme: 'dark', reducedMotion: 'reduce', viewport: { width: 320, height: 640 } },
  ],
  ['phone, forced colours', { forcedColors: 'active', viewport: { width: 320, height: 640 } }],
] as const

for (const [name, options] of looks)
  t.test(
    `pages: ${name}: passes axe-core, and does not scroll sideways`,
    { skip: missingBrowser },
    async (t) => {
      const browser = await openBrowser(t)
      const fixture = await startConsoleFixture(t, fixtureData())
      const { page, complaints } = await openConsole(browser, fixture.url, options)
      for (const [hash, heading] of pages) {
        await show(page, hash, heading)
        await checkAccessibility(t, page, hash)
        const wider = 'document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth'
        t.equal(await page.evaluate(wider), 0, `${hash} fits`)
      }
      t.same(complaints, [])
    },
  )

t.test('phones: a row has two lines, and its details show the rest', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  const { page } = await openConsole(browser, fixture.url, { viewport: { width: 390, height: 844 } })
  await show(page, '#/calls', 'Calls')
  const row = page.getByRole('row', { name: /denied: policy/ })
  t.match(await row.innerText(), /^\S+\s+denied: policy\s+jira_search$/)
  const { height = 0 } = (await row.boundingBox()) ?? {}
  const line = (await row.getByRole('button').boundingBox())?.height ?? 0
  t.ok(height < 3 * line, `${height} is less than three lines of ${line}`)
  await show(page, '#/overview', 'Overview')
  t.match(
    await page.getByRole('row', { name: /files/ }).innerText(),
    /^files\s+unhealthy[^\n]*\s+\S+ Health check timed out/,
  )
})

t.test(
  'phones: a link to sign in leaves the name of the server on one line',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const data = fixtureData()
    const [first, ...rest] = overview.backends
    const name = 'company-knowledge-base'
    const signInUrl = 'http://127.0.0.1:1/sign-in/company-knowledge-base'
    data['overview'] = {
      ...overview,
      backends: [{ ...first, name, health: 'unauthenticated', signInUrl }, ...rest],
    }
    const fixture = await startConsoleFixture(t, data)
    const { page } = await openConsole(browser, fixture.url, { viewport: { width: 390, height: 844 } })
    await show(page, '#/overview', 'Overview')
    const link = page.getByRole('link', { name: `Sign in to ${name}` })
    t.equal(await link.getAttribute('href'), signInUrl)
    const short = (await page.getByRole('button', { name: 'files' }).boundingBox())?.height
    const long = (await page.getByRole('button', { name }).boundingBox())?.height
    t.equal(long, short, 'the name is on one line')
  },
)

t.test('links: the underline is below the underscores of names', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  const { page } = await openConsole(browser, fixture.url)
  await show(page, '#/tools', 'Tools')
  const style = `getComputedStyle(document.querySelector('a[href*="github_create_issue"]'))`
  const offset = await page.evaluate<number>(
    `parseFloat(${style}.textUnderlineOffset) / parseFloat(${style}.fontSize)`,
  )
  t.ok(offset >= 0.25, `the offset is ${offset} em`)
})

t.test('calls: hides protocol messages until the user asks for them', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  const { page } = await openConsole(browser, `${fixture.url}#/calls`)
  await page.getByRole('table', { name: 'Calls' }).waitFor()
  await page.getByLabel('Show protocol messages').check()
  await waitUntil(page, `location.hash.includes('messages=all')`)
  await page.getByRole('table', { name: 'Calls' }).waitFor()
  const asked = fixture.requests.filter(({ path }) => path.startsWith('calls')).map(({ path }) => path)
  t.ok(asked[0]?.includes('messages=calls'), asked.join())
  t.ok(asked.at(-1)?.includes('messages=all'), asked.join())
})

/** Presses Tab until an element with that name has the focus. Fails after 60 times. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let step = 0; step < 60; step++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate<string>(
      'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent ?? ""',
    )
    if (!name.test(focused)) continue
    const hidden = await page.evaluate(`(() => {
      const box = document.activeElement.getBoundingClientRect()
      const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)
      return !(document.activeElement.contains(top) || top?.contains(document.activeElement))
    })()`)
    if (hidden) throw new Error(`the focus on ${name} is covered`)
    return
  }
  throw new Error(`the keyboard does not reach ${name}`)
}

t.test(
  'pages: a user finds and explains a denied call with the keyboard alone',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, fixture.url)
    /** The focus moves to the new page. */
    const atHeading = (text: string): Promise<void> =>
      waitForFocus(page, `focus.tagName === 'H1' && focus.textContent === '${text}'`)
    await page.getByRole('table', { name: 'Backends' }).waitFor()
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content')
    await tabTo(page, /^Calls$/)
    t.equal(
      await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'),
      'solid',
      'the focus is visible',
    )
    await page.keyboard.press('Enter')
    await atHeading('Calls')
    await waitUntil(page, '/^Calls · team-tools/.test(document.title)')
    await page.getByRole('row', { name: /denied: policy/ }).waitFor()
    for (let row = 0; row < 2; row++) await tabTo(page, /^\d\d:\d\d:\d\d$|,/)
    await page.keyboard.press('Enter')
    await page.locator('.details').waitFor()
    await tabTo(page, /^Explain$/)
    await page.keyboard.press('Enter')
    await atHeading('Policies')
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'Calls' }).waitFor()
  },
)

t.test(
  'pages: the menu of a small screen opens, navigates and closes',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, fixture.url, { viewport: { width: 320, height: 640 } })
    const link = page.getByRole('link', { name: 'Connect', exact: true })
    const menu = page.getByRole('button', { name: 'Menu' })
    await menu.waitFor()
    t.equal(await link.isVisible(), false)
    await menu.click()
    await checkAccessibility(t, page, 'the open menu')
    await link.click()
    await page.getByRole('heading', { level: 1, name: 'Connect' }).waitFor()
    await link.waitFor({ state: 'hidden' })
    await page.locator('.client').first().waitFor()
    const small = await page.evaluate(`[...document.querySelectorAll('button, a.button, input, select')]
    .map((one) => one.getBoundingClientRect()).filter(({ width, height }) => width > 0 && Math.min(width, height) < 24).length`)
    t.equal(small, 0, 'targets are at least 24 pixels large')
  },
)

t.test('pages: ends a session after a confirmation', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  fixture.handlers.set('DELETE sessions/02d1c0ffee11', () => {
    fixture.data['sessions'] = pageOf([])
    return undefined
  })
  const { page } = await openConsole(browser, `${fixture.url}#/sessions`)
  await page.getByRole('button', { name: 'End the session 02d1c0ffee11' }).click()
  await waitForFocus(page, "focus.textContent === 'End session'")
  t.notOk(fixture.requests.some(({ method }) => method === 'DELETE'))
  await page.keyboard.press('Enter')
  await page.getByText('No sessions.').waitFor()
})

t.test(
  'pages: connect copies an entry, shows links, and reports the first call',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, `${fixture.url}#/connect`, {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await page.getByRole('button', { name: 'Copy: Command for Claude Code' }).click()
    await page.getByRole('button', { name: 'Copy: Command for Claude Code' }).getByText('Copied').waitFor()
    t.match(
      await page.evaluate('navigator.clipboard.readText()'),
      /^claude mcp add --transport http team-tools https:/,
    )
    t.match(
      await page.getByRole('link', { name: 'Add to Cursor' }).getAttribute('href'),
      /^cursor:\/\/anysphere/,
    )
    await page.getByText('Waiting for your first call').waitFor()
    await fixture.streaming()
    fixture.data['connect'] = { ...connect, firstCall: new Date().toISOString() }
    fixture.push({ type: 'calls', items: [] })
    await page.getByText('Your first call arrived at:').waitFor()
  },
)

t.test(
  'pages: accounts links to the page of the authorization server, and signs out',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, `${fixture.url}#/accounts`)
    const link = page.getByRole('link', { name: 'Open connected accounts' })
    t.equal(await link.getAttribute('href'), connect.accounts)
    await page.getByRole('button', { name: 'Sign out of the console' }).click()
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
    t.equal(fixture.logouts.length, 1)
    t.equal(fixture.logouts[0], 'csrf-of-ana')
  },
)

t.test('pages: renews a CSRF value of an earlier session once', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  const { page } = await openConsole(browser, fixture.url)
  await page.getByRole('button', { name: 'files' }).click()
  fixture.data['me'] = { ...(fixture.data['me'] as object), csrf: 'csrf-of-later' }
  fixture.handlers.set('POST backends/files/recheck', ({ headers }, res) => {
    if (headers['x-gatehouse-csrf'] === 'csrf-of-later') return undefined
    res.writeHead(403, { 'content-type': 'application/problem+json' })
    res.end(JSON.stringify({ title: 'refused', status: 403, code: 'CSRF_REFUSED' }))
    return undefined
  })
  await page.getByRole('button', { name: 'Check now' }).click()
  await page.getByText('Checked').waitFor()
  const sent = fixture.requests.filter(({ path }) => path === 'backends/files/recheck')
  t.same(
    sent.map(({ headers }) => headers['x-gatehouse-csrf']),
    ['csrf-of-ana', 'csrf-of-later'],
  )
})
