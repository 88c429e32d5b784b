/** The console's list of calls in a real Chromium: filters, the stream, details with their explanation and contents. */
import t from 'tap'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import {
  checkAccessibility,
  openConsole,
  waitForFocus,
  waitForRows,
} from '../helpers/console/console-page.ts'
import { call, calls, fixtureData, meOf, page as pageOf } from '../helpers/console/fixture-data.ts'
import { startConsoleFixture } from '../helpers/console/fixture-server.ts'

t.setTimeout(180_000)

t.test(
  'calls: a denied call names the policy, with links to it and to Explain',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    fixture.handlers.set('POST policies/explain', () => ({
      decision: 'deny',
      steps: [
        { stage: 'name', verdict: 'pass', message: 'jira_search is search of jira' },
        {
          stage: 'policy',
          verdict: 'stop',
          message: 'policies[2] forbids it',
          details: ['group contractors'],
        },
      ],
    }))
    const { page, complaints } = await openConsole(browser, `${fixture.url}#/calls`)
    const table = page.getByRole('table', { name: 'Calls' })
    const denied = table.getByRole('row', { name: /denied: policy/ })
    t.match(await denied.textContent(), /jira_search.*ben.*cursor 2\.1.*2 ms/)
    await checkAccessibility(t, page, 'calls')
    await denied.getByRole('button').click()
    const details = page.locator('.details')
    t.match(
      await details.textContent(),
      /Denied by: policy.*policies\[2\].*Only auditors can see the arguments and result/s,
    )
    t.match(page.url(), /open=c8/, 'the open call is in the address')
    await checkAccessibility(t, page, 'details of a call')
    await details.getByRole('link', { name: 'Explain' }).click()
    await page.getByRole('heading', { level: 1, name: 'Policies' }).waitFor()
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('DENY').waitFor()
    t.match(
      await page.locator('.verdict').textContent(),
      /stopped.*policies\[2\] forbids it.*group contractors/,
    )
    await checkAccessibility(t, page, 'an explanation')
    const asked = fixture.requests.find(({ path }) => path === 'policies/explain')
    t.same(JSON.parse(asked?.body ?? ''), {
      action: 'call_tool',
      name: 'jira_search',
      claims: { sub: 'u-88' },
    })
    await page.getByRole('link', { name: 'Calls', exact: true }).click()
    await page
      .getByRole('row', { name: /denied: policy/ })
      .getByRole('button')
      .click()
    await page.getByRole('link', { name: 'policies[2]' }).click()
    await page.locator('.policy.asked').waitFor()
    await waitForFocus(page, 'focus.closest(".policy.asked") !== null')
    t.same(complaints, [])
  },
)

t.test(
  'calls: filters are sent to the server and stay in the address',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, `${fixture.url}#/calls`)
    const sent = (query: RegExp): Promise<unknown> => page.waitForRequest((one) => query.test(one.url()))
    const byOutcome = sent(/calls\?outcome=denied&messages=calls&limit=100$/)
    await page.getByLabel('Outcome').selectOption('denied')
    await byOutcome
    const byCaller = sent(/calls\?caller=ben&outcome=denied&messages=calls&limit=100$/)
    await page.getByLabel('Caller').fill('ben')
    await byCaller
    t.match(page.url(), /#\/calls\?outcome=denied&caller=ben$/)
    await page.locator('[aria-busy="false"]').waitFor()
    t.equal(await page.evaluate('document.activeElement.type'), 'search', 'the focus stays in the field')
    const again = sent(/calls\?caller=ben&outcome=denied&messages=calls&limit=100$/)
    await page.reload()
    await again
    t.equal(await page.getByLabel('Caller').inputValue(), 'ben')
  },
)

t.test(
  'calls: rows stay until the rows of another filter have arrived',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, `${fixture.url}#/calls`)
    await waitForRows(page, 'Calls', calls.length)
    const asked = Promise.withResolvers<() => void>()
    fixture.handlers.set('GET calls', (_, res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      asked.resolve(() => res.end(JSON.stringify(pageOf([call('f1', { name: 'narrowed' })]))))
    })
    await page.getByLabel('Outcome').selectOption('denied')
    await page.locator('[aria-busy="true"]').waitFor()
    t.equal(await page.locator('tbody tr').count(), calls.length, 'nothing is shown in between')
    const respond = await asked.promise
    respond()
    await waitForRows(page, 'Calls', 1)
    await page.getByRole('row', { name: /narrowed/ }).waitFor()
    fixture.handlers.set('GET calls', () => 503)
    await page.getByLabel('Outcome').selectOption('success')
    await page.getByRole('alert').waitFor()
    t.equal(await page.locator('tbody tr').count(), 0, 'no rows of the previous filter are shown')
  },
)

t.test(
  'calls: new rows wait, shown rows are updated in place, a gap reloads the list',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, `${fixture.url}#/calls`)
    const rows = page.locator('tbody tr')
    const before = calls.length
    await fixture.streaming()
    await waitForRows(page, 'Calls', before)
    const ended = { ...(calls[0] ?? call('c9')), outcome: 'success', ms: 77 } as const
    fixture.push({ type: 'calls', items: [call('d1'), call('d2', { outcome: 'failure' }), ended] })
    await page.getByRole('row', { name: /success.*github_search_code.*77 ms/ }).waitFor()
    t.equal(await rows.count(), before, 'new calls do not move the visible rows')
    await page.getByRole('button', { name: 'Show 2 new' }).click()
    await waitForRows(page, 'Calls', before + 2)
    fixture.push({ type: 'calls', items: [call('d3')] })
    await page.getByRole('button', { name: 'Show 1 new' }).waitFor()
    await page.getByLabel('Show new calls immediately').check()
    await waitForRows(page, 'Calls', before + 3)
    fixture.push({ type: 'calls', items: [call('d4')] })
    await waitForRows(page, 'Calls', before + 4)
    fixture.data['calls'] = pageOf([call('e1', { name: 'after_the_gap' })], { gap: true })
    fixture.push({ type: 'gap' })
    await page.getByRole('row', { name: /after_the_gap/ }).waitFor()
    await page.getByText('Some calls are missing because this server stores only the latest ones').waitFor()
  },
)

t.test('calls: shows at most 200 rows, however many calls arrive', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  const { page } = await openConsole(browser, `${fixture.url}#/calls`)
  await page.getByRole('row', { name: /denied: policy/ }).waitFor()
  await page.getByLabel('Show new calls immediately').check()
  await fixture.streaming()
  fixture.push({ type: 'calls', items: Array.from({ length: 450 }, (_, i) => call(`many-${i}`)) })
  await waitForRows(page, 'Calls', 200)
})

t.test(
  'calls: contents keep large numbers; a rejection shows the next step',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData())
    const { page } = await openConsole(browser, `${fixture.url}#/calls?open=c7`)
    await page.getByRole('button', { name: 'Show arguments and result' }).click()
    t.match(await page.getByRole('region', { name: 'Arguments' }).textContent(), /"number": 9007199254740993/)
    await checkAccessibility(t, page, 'contents of a call')
    fixture.handlers.set('GET calls/c6/payload', () => 403)
    await page
      .getByRole('row', { name: /release.*1\.9 s/ })
      .first()
      .getByRole('button')
      .click()
    await page.getByRole('button', { name: 'Show arguments and result' }).click()
    await page.getByText('Ask the operator of this server for the role.').waitFor()
  },
)

t.test(
  'calls: a user without the permission for all calls sees only their own',
  { skip: missingBrowser },
  async (t) => {
    const browser = await openBrowser(t)
    const fixture = await startConsoleFixture(t, fixtureData(meOf([], ['tools', 'calls.own', 'try'])))
    const { page } = await openConsole(browser, `${fixture.url}#/calls?open=c8`)
    await page.getByRole('heading', { level: 1, name: 'Your calls' }).waitFor()
    await page.locator('.details').waitFor()
    t.equal(await page.getByLabel('Caller').count(), 0)
    t.equal(await page.getByRole('link', { name: 'Explain' }).count(), 0)
    t.notOk(
      fixture.requests.some(({ path }) => path.startsWith('backends')),
      'no request is rejected',
    )
  },
)
