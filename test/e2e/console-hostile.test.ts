/** The console shows all input from servers and clients as text: markup, hidden characters, megabytes. */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { Tool } from '../../runtime/console/api.ts'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import { checkAccessibility, openConsole, show } from '../helpers/console/console-page.ts'
import {
  call,
  connect,
  detailOf,
  fixtureData,
  page as pageOf,
  toolList,
  tools,
} from '../helpers/console/fixture-data.ts'
import { openStream, startConsoleFixture, writeEvent } from '../helpers/console/fixture-server.ts'

t.setTimeout(240_000)

const markup = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>"><svg onload=window.hit=1>'
/** A user reads "safe"; the model sees more. */
const hidden = 'read\u202Eelif\u200B\u200B\u2066s\u{E0049}\u{E0067}\uD83D'
const megabytes = 2_000_000

/** Checks that no script ran, no other origin was loaded, and the page does not scroll sideways. */
async function isInert(t: Pick<Test, 'same'>, page: Page): Promise<void> {
  const wider = 'document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth'
  t.same(
    await page.evaluate(
      `[typeof window.hit, document.querySelectorAll('main img, main script, main iframe').length, ${wider}]`,
    ),
    ['undefined', 0, 0],
  )
}

t.test('hostile: names, descriptions and schemas of tools', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const data = fixtureData()
  const [first] = tools
  if (!first) throw new Error('no tool')
  const evil: Tool = {
    ...first,
    name: `${hidden}/../${markup}`,
    summary: markup,
    original: hidden,
    suspicious: true,
  }
  const long: Tool = { ...first, name: 'long', summary: 'x'.repeat(200) }
  data['tools'] = { ...toolList, items: [evil, long] }
  data[`tools/${encodeURIComponent(evil.name.toWellFormed())}`] = detailOf(
    evil,
    {
      type: 'object',
      properties: { [markup]: { type: 'string', title: markup, description: hidden, pattern: '(a+)+$' } },
    },
    { description: `${markup}${hidden}` },
  )
  data['tools/long'] = detailOf(
    long,
    { type: 'object' },
    {
      description: `${'\u200B'.repeat(100_000)}${'word '.repeat(megabytes / 5)}`,
      raw: '['.repeat(200_000),
    },
  )
  const fixture = await startConsoleFixture(t, data)
  const { page, complaints, requested } = await openConsole(browser, `${fixture.url}#/tools`, {
    viewport: { width: 320, height: 640 },
  })
  const link = page.getByRole('rowheader').first().getByRole('link')
  t.match(await link.textContent(), /readU\+202EelifU\+200B ×2U\+2066sU\+E0049U\+E0067/)
  t.equal(await page.getByText('hidden characters', { exact: true }).count(), 1)
  await isInert(t, page)
  await checkAccessibility(t, page, 'the list')
  await link.click()
  await page.getByText('that change the text direction').waitFor()
  t.match(await page.locator('.prose').textContent(), `${markup}readU+202E`)
  await isInert(t, page)
  for (const tab of ['Input', 'Raw', 'Try']) {
    await page.getByRole('navigation', { name: 'Tool details' }).getByRole('link', { name: tab }).click()
    await page.locator('.loading').waitFor({ state: 'detached' })
    await isInert(t, page)
  }
  await show(page, '#/tools/long', 'long')
  t.match(await page.locator('.prose').textContent(), /^U\+200B ×4,000$/)
  const more = page.getByRole('button', { name: /Show 40,000 of 2,096,000 more characters/ })
  await more.click()
  await page.getByRole('button', { name: /of 2,056,000 more/ }).waitFor()
  t.ok(Number(await page.evaluate('document.querySelectorAll("*").length')) < 2000, 'few elements')
  await show(page, '#/tools/long/raw', 'long')
  t.match(await page.getByRole('region', { name: 'Raw' }).textContent(), /^\[{4000}$/)
  await isInert(t, page)
  t.ok(
    requested.every((url) => url.startsWith(fixture.url) || url.startsWith('data:,')),
    requested.join('\n'),
  )
  t.same(complaints, [])
})

t.test('hostile: callers, clients, errors, contents and links', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const data = fixtureData()
  const evil = call('evil', {
    name: markup,
    caller: { sub: hidden, name: markup, client: `${markup}${'9'.repeat(5000)}` },
    outcome: 'error',
    error: { message: markup.repeat(2000) },
  })
  data['calls'] = pageOf([evil])
  data['calls/evil/payload'] = {
    id: 'evil',
    arguments: JSON.stringify({ [markup]: hidden }),
    result: markup,
    truncated: false,
  }
  data['connect'] = {
    ...connect,
    clients: [
      {
        id: 'x',
        label: markup,
        link: 'javascript:window.hit=1',
        command: markup,
        file: { path: markup, content: hidden },
      },
    ],
  }
  const fixture = await startConsoleFixture(t, data)
  const { page, complaints } = await openConsole(browser, `${fixture.url}#/calls?open=evil`, {
    viewport: { width: 320, height: 640 },
  })
  await page.getByRole('button', { name: 'Show arguments and result' }).click()
  await page.getByRole('region', { name: 'Result' }).waitFor()
  await isInert(t, page)
  await show(page, '#/connect', 'Connect')
  await page.locator('.client').waitFor()
  t.equal(await page.locator('main a').count(), 0, 'a script link is not clickable')
  await isInert(t, page)
  t.same(complaints, [])
})

t.test('hostile: results of a tool', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  const content = [
    { type: 'text', text: markup },
    {
      type: 'image',
      mimeType: 'image/svg+xml',
      data: btoa(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit=1"/>`),
    },
    { type: 'image', mimeType: 'image/png', data: `x" onerror="window.hit=1` },
    { type: 'resource', resource: { uri: 'ui://x', mimeType: 'text/html', text: markup } },
    null,
    ...Array.from({ length: 100 }, () => ({ type: 'text', text: hidden })),
  ]
  fixture.handlers.set('POST tries', () => ({ id: 'run-1' }))
  fixture.handlers.set('GET tries/run-1/events', (_, res) => {
    openStream(res)
    writeEvent(res, { type: 'progress', progress: 1, message: markup })
    for (let i = 0; i < 5000; i++) writeEvent(res, { type: 'log', level: markup, text: markup })
    writeEvent(res, { type: 'done', outcome: 'success', ms: 1, result: JSON.stringify({ content }) })
  })
  const { page, complaints } = await openConsole(browser, `${fixture.url}#/tools/files_read/try`)
  await page.getByRole('button', { name: 'Run as Ana' }).click()
  await page.getByText('55 more items: show as JSON.').waitFor()
  await page.getByText('100 log lines').click()
  await isInert(t, page)
  await page.getByLabel('Show as JSON').check()
  await isInert(t, page)
  t.same(complaints, [])
})
