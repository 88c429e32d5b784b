/**
 * Tests the console's pages on a real virtual server: its Content-Security-Policy, its launch token, its live calls.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { bundleConsole } from '../../manifests/bundle/console.ts'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import { startTestConsole, type TestConsole } from '../helpers/console/console.ts'
import {
  checkAccessibility,
  type ConsolePage,
  openConsole,
  show,
  waitForRows,
} from '../helpers/console/console-page.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless } from '../helpers/mcp/wire.ts'

t.setTimeout(180_000)

async function open(t: Test): Promise<ConsolePage & { readonly console: TestConsole }> {
  const assets = mkdtempSync(join(tmpdir(), 'gatehouse-console-'))
  await bundleConsole(resolve(import.meta.dirname, '../..'), assets)
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url }, {}, { assets })
  t.teardown(async () => {
    await console.close()
    await fixture.close()
    rmSync(assets, { recursive: true, force: true })
  })
  const browser = await openBrowser(t)
  return { ...(await openConsole(browser, `${console.url}#launch=${console.token}`)), console }
}

t.test(
  'live: shows the overview and the calls of a running server without a browser error',
  { skip: missingBrowser },
  async (t) => {
    const { page, complaints, requested, console } = await open(t)
    await page.getByRole('row', { name: /notes.*healthy/ }).waitFor()
    t.equal(page.url(), console.url, 'the token left the address')
    await checkAccessibility(t, page, 'overview')
    await page.getByRole('button', { name: 'notes' }).click()
    await page.getByRole('button', { name: 'Check now' }).click()
    await page.getByText('Checked', { exact: true }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await show(page, '#/calls', 'Calls')
    await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'hi' } })
    await page.getByRole('button', { name: /Show \d+ new/ }).click()
    const row = page.getByRole('row', { name: /success.*notes_echo.*notes/ })
    await row.getByRole('button').click()
    t.match(await page.locator('.details').textContent(), /2026-07-28.*not recorded/s)
    await checkAccessibility(t, page, 'calls')
    await stateless(console.vmcp.url, 'tools/call', { name: 'missing', arguments: {} })
    await page.getByRole('button', { name: /Show \d+ new/ }).click()
    await page.getByRole('row', { name: /failed.*missing/ }).waitFor()
    await page.getByLabel('Outcome').selectOption('failure')
    await waitForRows(page, 'Calls', 1)
    await page.getByRole('row', { name: /failed.*missing/ }).waitFor()
    t.ok(
      requested.every((url) => url.startsWith(console.url) || url.startsWith('data:')),
      requested.join('\n'),
    )
    t.same(complaints, [])
  },
)

t.test(
  'live: without the token, the page requires the printed address',
  { skip: missingBrowser },
  async (t) => {
    const { page, console } = await open(t)
    const other = await page.context().browser()?.newContext()
    const fresh = await other?.newPage()
    if (!fresh) throw new Error('no page')
    await fresh.goto(console.url)
    await fresh.getByRole('heading', { name: 'You are not signed in' }).waitFor()
    await checkAccessibility(t, fresh, 'sign in')
    const [address, signIn] = [
      fresh.getByLabel('Console address'),
      fresh.getByRole('button', { name: 'Sign in' }),
    ]
    await address.fill('http://127.0.0.1/#nothing')
    await signIn.click()
    await fresh.getByText('The address must end in #launch=').waitFor()
    await address.fill(`${console.url}#launch=wrong`)
    await signIn.click()
    await fresh.getByText('The server rejected the token').waitFor()
    await address.fill(`${console.url}#launch=${console.token}`)
    await signIn.click()
    await fresh.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  },
)

t.test('live: the user finds, reads and tries tools in both eras', { skip: missingBrowser }, async (t) => {
  const { page, complaints } = await open(t)
  await show(page, '#/tools', 'Tools')
  await page.getByLabel('Text').fill('test_elicitation')
  const link = page.getByRole('link', { name: 'notes_test_elicitation', exact: true })
  await page.getByText(/^4 of \d+ tools/).waitFor()
  await link.click()
  await page.getByRole('link', { name: 'Input' }).click()
  await page.getByRole('region', { name: 'Input' }).filter({ hasText: '"message"' }).waitFor()
  await checkAccessibility(t, page, 'a tool')
  for (const era of ['2026-07-28', '2025-11-25']) {
    await page.getByRole('link', { name: 'Input' }).click()
    await page.getByRole('link', { name: 'Try' }).click()
    await page.getByLabel('Protocol').selectOption(era)
    await page.getByRole('textbox', { name: /^message/ }).fill(`Who are you in ${era}?`)
    await page.getByRole('button', { name: 'Run' }).click()
    const question = page.getByRole('form', { name: 'Request from notes' })
    await question.getByText(`Who are you in ${era}?`).waitFor()
    for (const field of await question.getByRole('textbox').all()) await field.fill('ana@example.com')
    await question.getByRole('button', { name: 'Send' }).click()
    await page.getByText('success').waitFor()
    t.match(await page.getByRole('region', { name: 'Run' }).textContent(), /accept.*ana@example\.com/s, era)
  }
  await show(page, '#/tools/notes_test_tool_with_progress/try', 'notes_test_tool_with_progress')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByText('success').waitFor()
  await show(page, '#/tools/notes_wait/try', 'notes_wait')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByText('Running').waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('cancelled').waitFor()
  t.same(complaints, [])
})

t.test('live: the other pages show the data of the server', { skip: missingBrowser }, async (t) => {
  const { page, complaints, console } = await open(t)
  const session = await openSession(console.vmcp.url)
  await show(page, '#/sessions', 'Sessions')
  await page.getByRole('button', { name: 'End the session' }).click()
  await page.getByRole('button', { name: 'End session' }).click()
  await page.getByText('No sessions.').waitFor()
  await page.getByText('gatehouse client add claude-code').waitFor()
  t.equal((await session.request('tools/list')).status, 404, 'the client must start a new session')
  await show(page, '#/config', 'Config')
  await page.getByRole('region', { name: 'Running configuration' }).waitFor()
  await checkAccessibility(t, page, 'config')
  await show(page, '#/connect', 'Connect')
  await page.getByRole('region', { name: 'Server address' }).filter({ hasText: console.vmcp.url }).waitFor()
  await checkAccessibility(t, page, 'connect')
  await show(page, '#/policies', 'Policies')
  await page.getByText('No policies are configured').waitFor()
  await checkAccessibility(t, page, 'policies')
  t.same(complaints, [])
})
