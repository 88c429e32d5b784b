/**
 * Tests the frame of the console and its overview in a real Chromium: loaded files, content, states and their next
 * step.
 */
import t from 'tap'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import { checkAccessibility, openConsole, show } from '../helpers/console/console-page.ts'
import { fixtureData, meOf, overview } from '../helpers/console/fixture-data.ts'
import { startConsoleFixture } from '../helpers/console/fixture-server.ts'

t.setTimeout(180_000)

t.test(
  'console: shows the overview under a base path, and loads nothing from other origins',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData(), '/ui/console')
    const { page, complaints, requested } = await openConsole(browser, fixture.url)
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    const table = page.getByRole('table', { name: 'Backends' })
    await table.waitFor()
    t.same(await table.getByRole('rowheader').allTextContents(), ['github', 'jira', 'files'])
    const jira = table.getByRole('row', { name: /jira/ })
    t.match(await jira.textContent(), /needs a login.*22.*12.*the refresh token has expired/)
    t.match(
      await jira.getByRole('img').getAttribute('aria-label'),
      /jira: 60 minutes: \d+ calls, 31 failed|not healthy/,
    )
    t.match(
      await page.locator('.problems:not(.passing)').textContent(),
      /files.*does not respond.*What to do:.*Check now/,
    )
    const down = page.getByRole('region', {
      name: /^2 of 3 backends are down: 1 rejecting the credential, 1 not responding$/,
    })
    t.match(
      await down.textContent(),
      /jira: Authentication failed \(HTTP 401\).*What to do: check outgoingAuth.*files: Health check timed out/,
    )
    const [summaryBox, tableBox] = [await down.boundingBox(), await table.boundingBox()]
    t.ok((summaryBox?.y ?? 0) < (tableBox?.y ?? 0), 'the summary is first')
    t.ok(
      (tableBox?.y ?? 0) + (tableBox?.height ?? 0) < (page.viewportSize()?.height ?? 0),
      'the table needs no scrolling',
    )
    await checkAccessibility(t, page, 'overview')
    await page.getByLabel('Charts as tables').check()
    await page.getByRole('columnheader', { name: 'Minute', exact: true }).waitFor()
    await table.getByRole('button', { name: 'files' }).click()
    t.match(await page.locator('.details').textContent(), /stdio.*open: calls are rejected.*timeout/)
    await checkAccessibility(t, page, 'overview with tables and details')
    t.ok(
      requested.every((url) => url.startsWith(fixture.url) || url.startsWith('data:')),
      requested.join('\n'),
    )
    t.same(complaints, [])
  },
)

t.test(
  'console: recheck sends the CSRF value and shows the new state',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, fixture.url)
    fixture.handlers.set('POST backends/files/recheck', () => {
      const healed = overview.backends.map((one) => ({ ...one, health: 'healthy' }))
      const { summary: _summary, ...up } = overview
      fixture.data['overview'] = { ...up, down: [], problems: [], backends: healed }
      return healed[2]
    })
    await page.getByRole('button', { name: 'files' }).click()
    await page.getByRole('button', { name: 'Check now' }).click()
    await page.getByText('All backends are up').waitFor()
    const sent = fixture.requests.find(({ path }) => path === 'backends/files/recheck')
    t.equal(sent?.headers['x-gatehouse-csrf'], 'csrf-of-ana')
  },
)

t.test(
  'console: an action that requires a recent login asks the user to sign in again',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, fixture.url)
    fixture.handlers.set('POST backends/files/recheck', (_request, res) => {
      res.writeHead(403, { 'content-type': 'application/problem+json' })
      res.end(JSON.stringify({ status: 403, code: 'LOGIN_TOO_OLD', detail: 'sign in again' }))
    })
    await page.getByRole('button', { name: 'files' }).click()
    await page.getByRole('button', { name: 'Check now' }).click()
    const link = page.getByRole('alert').getByRole('link', { name: 'Sign in again' })
    t.match(await link.getAttribute('href'), /^\/login\?to=%2F.*&again=true$/)
  },
)

t.test(
  'console: shows health events of the stream, except while it is paused',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, fixture.url)
    await fixture.streaming()
    await page.getByText('Live', { exact: true }).waitFor()
    const stateOf = (health: 'healthy' | 'unknown'): void => {
      fixture.data['overview'] = {
        ...overview,
        backends: overview.backends.map((one) => ({ ...one, health })),
      }
      fixture.push({ type: 'health', backend: 'files', health, since: overview.asOf })
    }
    // The page did not begin with this state, so the row shows that the event was read.
    stateOf('unknown')
    await page.getByRole('row', { name: /files.*unknown/ }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    stateOf('healthy')
    const reads = fixture.requests.filter(({ path }) => path === 'overview').length
    await page.getByText('Paused').waitFor()
    t.equal(fixture.requests.filter(({ path }) => path === 'overview').length, reads)
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('row', { name: /files.*healthy/ }).waitFor()
  },
)

t.test(
  'console: shows the next step to users who are signed out, have no role, or have an expired session',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData(), '/ui/console')
    fixture.handlers.set('GET me', () => 401)
    const { page } = await openConsole(browser, `${fixture.url}#/calls?outcome=denied`)
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
    await checkAccessibility(t, page, 'signed out')
    t.equal(
      await page.getByRole('link', { name: 'Sign in' }).getAttribute('href'),
      `/ui/console/login?to=${encodeURIComponent('/#/calls?outcome=denied')}`,
    )
    fixture.handlers.delete('GET me')
    fixture.data['me'] = meOf([], ['tools', 'calls.own', 'try'])
    await page.reload()
    await page.getByText('You are signed in without a role').waitFor()
    const pages = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()
    t.same(pages, ['Tools', 'Calls', 'Sessions', 'Tasks', 'Accounts', 'Connect'])
    await show(page, '#/config', 'Config')
    await page.getByText('You need the operator role to open this page.').waitFor()
    await checkAccessibility(t, page, 'a page of another role')
    fixture.handlers.set('GET sessions', () => 401)
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByText('Your session has ended').waitFor()
    await checkAccessibility(t, page, 'an ended session')
    t.equal(await page.getByRole('link', { name: 'Sign in again' }).count(), 1)
  },
)

t.test(
  'console: reports a lost connection, keeps its content, and reconnects',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, fixture.url)
    await page.getByRole('table', { name: 'Backends' }).waitFor()
    await fixture.streaming()
    fixture.cutOff()
    await page.getByText(/No connection to the server since/).waitFor()
    await checkAccessibility(t, page, 'a lost connection')
    t.equal(await page.getByRole('row', { name: /github/ }).count(), 1)
    fixture.comeBack()
    // The page may reconnect on its own before the click.
    await Promise.race([
      page.getByRole('button', { name: 'Try now' }).click(),
      page.getByText(/No connection to the server since/).waitFor({ state: 'detached' }),
    ])
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText(/No connection to the server since/).waitFor({ state: 'detached' })
  },
)

t.test(
  'console: moves the launch token of dev from the address into a header',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData({ ...meOf(['viewer']), anonymous: true }))
    const { page } = await openConsole(browser, `${fixture.url}#launch=s3cret-token`)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    t.equal(page.url(), fixture.url, 'the token is no longer in the address')
    t.ok(fixture.requests.every(({ headers }) => headers['x-gatehouse-launch'] === 's3cret-token'))
    fixture.handlers.set('GET me', ({ headers }) =>
      headers['x-gatehouse-launch'] === 's3cret-token' ? fixture.data['me'] : 401,
    )
    const second = await page.context().newPage()
    await second.goto(fixture.url)
    await second.getByRole('heading', { name: 'Overview' }).waitFor()
  },
)

t.test('console: browsers load a small amount of data', async (t) => {
  const { sizes } = await startConsoleFixture(t, {})
  t.ok(
    sizes.scripts <= 60 * 1024 && sizes.entry <= 30 * 1024 && sizes.styles <= 8 * 1024,
    JSON.stringify(sizes),
  )
})
