/**
 * Tests a tool trial in the console, in a real Chromium: the form of a schema, the sent arguments, and the run with its
 * requests.
 */
import type { ServerResponse } from 'node:http'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { TryEvent } from '../../runtime/console/api.ts'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import { checkAccessibility, openConsole, waitForFocus } from '../helpers/console/console-page.ts'
import { detailOf, fixtureData, tools } from '../helpers/console/fixture-data.ts'
import {
  type ConsoleFixture,
  openStream,
  startConsoleFixture,
  writeEvent,
} from '../helpers/console/fixture-server.ts'

t.setTimeout(240_000)

interface Tries {
  readonly fixture: ConsoleFixture
  readonly page: Page
  readonly complaints: readonly string[]
  /** Bodies of `POST tries`. */
  readonly started: { readonly name: string; readonly arguments: string; readonly era: string }[]
  /** Resolves once the page follows the run. */
  readonly followed: () => Promise<(event: TryEvent) => void>
}

async function open(t: Test, tool: string, schema?: unknown): Promise<Tries> {
  const browser = await openBrowser(t)
  const fixture = await startConsoleFixture(t, fixtureData())
  const found = tools.find(({ name }) => name === tool)
  if (schema !== undefined && found) fixture.data[`tools/${tool}`] = detailOf(found, schema)
  const started: Tries['started'] = []
  let follower: ServerResponse | undefined
  let told: (() => void) | undefined
  fixture.handlers.set('POST tries', ({ body }) => {
    started.push(JSON.parse(body))
    return { id: 'run-1' }
  })
  fixture.handlers.set('GET tries/run-1/events', (_, res) => {
    openStream(res)
    follower = res
    told?.()
  })
  fixture.handlers.set('DELETE tries/run-1', () => undefined)
  const { page, complaints } = await openConsole(browser, `${fixture.url}#/tools/${tool}/try`)
  await page.getByRole('button', { name: /^Run/ }).waitFor()
  return {
    fixture,
    page,
    complaints,
    started,
    followed: async () => {
      if (!follower) await new Promise<void>((resolve) => (told = resolve))
      return (event) => follower && writeEvent(follower, event)
    },
  }
}

t.test('try: the form sends the typed values and omits empty fields', { skip: missingBrowser }, async (t) => {
  const { page, started, complaints, followed } = await open(t, 'github_create_issue')
  await checkAccessibility(t, page, 'the form')
  await page.getByRole('button', { name: 'Run as Ana' }).click()
  await page.getByText('Some fields are invalid').waitFor()
  t.match(await page.locator('.field', { hasText: 'owner' }).first().textContent(), /At least 1 character/)
  t.equal(started.length, 0)
  await checkAccessibility(t, page, 'the form with errors')
  await page.getByLabel(/^owner/).fill('gatehouse-dev')
  await page.getByLabel(/^title/).fill('Log says "nothing" 🙂')
  const assignee = page.getByRole('group', { name: /^assignee/ })
  await assignee.getByRole('textbox', { name: /^name/ }).fill('ana')
  await assignee.getByRole('textbox', { name: /^id/ }).fill('9007199254740993')
  await page.getByRole('button', { name: 'Add to labels' }).click()
  await page.getByRole('textbox', { name: /^labels\[0\]/ }).fill('bug')
  await page
    .getByRole('group', { name: /^watchers/ })
    .getByLabel('cleo')
    .check()
  await page.getByLabel('Kind of target').selectOption('number')
  await page.getByRole('textbox', { name: /^number/ }).fill('12')
  await page.getByLabel(/^extra/).fill('{"big": 1e400, "n": 12345678901234567890}')
  await page.getByRole('radio', { name: 'JSON' }).check()
  const json = page.getByRole('textbox', { name: 'Arguments' })
  t.match(await json.inputValue(), /"id": 9007199254740993/)
  await page.getByRole('radio', { name: 'Form' }).check()
  t.equal(await page.getByRole('textbox', { name: /^id/ }).inputValue(), '9007199254740993')
  await page.getByRole('button', { name: 'Run as Ana' }).click()
  await followed()
  const text = (started[0]?.arguments ?? '').replaceAll(/\s+(?=(?:[^"]*"[^"]*")*[^"]*$)/g, '')
  t.match(text, '"id":9007199254740993')
  t.match(text, '"extra":{"big":1e400,"n":12345678901234567890}')
  t.match(JSON.parse(started[0]?.arguments ?? '{}'), {
    owner: 'gatehouse-dev',
    title: 'Log says "nothing" 🙂',
    assignee: { name: 'ana' },
    labels: ['bug'],
    watchers: ['cleo'],
    target: 12,
  })
  t.same(Object.keys(JSON.parse(started[0]?.arguments ?? '{}')).sort(), [
    'assignee',
    'extra',
    'labels',
    'owner',
    'target',
    'title',
    'watchers',
  ])
  t.equal(started[0]?.era, '2026-07-28')
  t.same(complaints, [])
})

t.test(
  'try: shows progress, log messages, a request to the user, and the result',
  { skip: missingBrowser },
  async (t) => {
    const { page, fixture, followed, started } = await open(t, 'files_read')
    await page.getByLabel('Protocol').selectOption('2025-11-25')
    await page.getByRole('button', { name: 'Run as Ana' }).click()
    const send = await followed()
    t.same(started, [{ name: 'files_read', arguments: '{}', era: '2025-11-25' }])
    send({ type: 'progress', progress: 2, total: 5, message: 'reading' })
    send({ type: 'log', level: 'info', text: 'opened' })
    await page.getByText('40 %').waitFor()
    await page.getByText('1 log line').waitFor()
    send({
      type: 'ask',
      id: 'q1',
      backend: 'files',
      message: 'Which project?',
      mode: 'form',
      schema: JSON.stringify({
        type: 'object',
        required: ['project'],
        properties: {
          project: {
            oneOf: [
              { const: 'web', title: 'The web' },
              { const: 'api', title: 'The API' },
            ],
          },
          since: { type: 'string', format: 'date' },
        },
      }),
    })
    const question = page.getByRole('form', { name: 'Request from files' })
    await question.waitFor()
    await waitForFocus(page, 'focus.closest("form.question") !== null')
    await checkAccessibility(t, page, 'a request to the user')
    let answered: unknown
    fixture.handlers.set('POST tries/run-1/answers/q1', ({ body }) => {
      answered = JSON.parse(body)
      return undefined
    })
    await question.getByRole('button', { name: 'Send' }).click()
    await question.getByText('Choose one.').waitFor()
    await question.getByLabel(/^project/).selectOption('The API')
    await question.getByRole('button', { name: 'Send' }).click()
    await question.waitFor({ state: 'detached' })
    t.equal((answered as { action: string }).action, 'accept')
    t.same(JSON.parse((answered as { content: string }).content), { project: 'api' })
    send({
      type: 'done',
      outcome: 'success',
      ms: 1234,
      result: '{"content":[{"type":"text","text":"hello"}],"structuredContent":{"n":9007199254740993}}',
    })
    await page.getByText('1.2 s').waitFor()
    await page.getByText('hello', { exact: true }).waitFor()
    t.match(await page.getByRole('region', { name: 'Run' }).textContent(), /success.*"n": 9007199254740993/s)
    await checkAccessibility(t, page, 'a result')
  },
)

t.test(
  'try: shows the host of a page to visit first, and does not link other addresses',
  { skip: missingBrowser },
  async (t) => {
    const { page, followed } = await open(t, 'files_read')
    await page.getByRole('button', { name: 'Run as Ana' }).click()
    const send = await followed()
    const ask = { type: 'ask', backend: 'files', message: 'Pay', mode: 'url' } as const
    send({ ...ask, id: 'q1', url: 'https://pay.example.com/order?id=1' })
    const link = page.getByRole('link', { name: 'Open the page in a new tab' })
    await link.waitFor()
    t.match(await page.locator('.question').textContent(), /Host of the page: pay\.example\.com/)
    t.equal(await link.getAttribute('rel'), 'noopener noreferrer')
    send({ ...ask, id: 'q2', url: 'javascript:window.hit=1' })
    await page.getByText('not a web page').waitFor()
    t.equal(await link.count(), 1)
  },
)

t.test('try: cancelling or leaving the page ends the run', { skip: missingBrowser }, async (t) => {
  const { page, fixture, followed } = await open(t, 'files_read')
  await page.getByRole('button', { name: 'Run as Ana' }).click()
  const send = await followed()
  const cancelled = page.waitForRequest((one) => one.method() === 'DELETE')
  await page.getByRole('button', { name: 'Cancel' }).click()
  t.match((await cancelled).url(), /tries\/run-1$/)
  send({ type: 'done', outcome: 'cancelled', ms: 10 })
  await page.getByText('cancelled').waitFor()
  await page.getByRole('button', { name: 'Run as Ana' }).click()
  await page.getByText('Running').waitFor()
  await followed()
  const left = page.waitForResponse((one) => one.request().method() === 'DELETE')
  await page.getByRole('link', { name: 'Overview' }).click()
  await left
  t.equal(fixture.requests.filter(({ method }) => method === 'DELETE').length, 2)
})

t.test('try: cancelling works before the server has named the run', { skip: missingBrowser }, async (t) => {
  const { page, fixture } = await open(t, 'files_read')
  const named = Promise.withResolvers<undefined>()
  await page.route('**/tries', async (route) => {
    await named.promise
    await route.continue()
  })
  await page.getByRole('button', { name: 'Run as Ana' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  const cancelled = page.waitForResponse((one) => one.request().method() === 'DELETE')
  t.same(
    fixture.requests.filter(({ method }) => method === 'DELETE'),
    [],
  )
  named.resolve(undefined)
  t.match((await cancelled).url(), /tries\/run-1$/)
})

t.test('try: cancelling before the events arrive shows the outcome', { skip: missingBrowser }, async (t) => {
  const { page, fixture } = await open(t, 'files_read')
  const asked = Promise.withResolvers<undefined>()
  const ended = Promise.withResolvers<undefined>()
  await page.route('**/tries/run-1/events', async (route) => {
    asked.resolve(undefined)
    await ended.promise
    await route.continue()
  })
  let cancels = 0
  // The server deletes a run once the page can read the outcome.
  fixture.handlers.set('DELETE tries/run-1', () => (++cancels > 1 ? 404 : undefined))
  fixture.handlers.set('GET tries/run-1/events', (_, res) => {
    openStream(res)
    writeEvent(res, { type: 'done', outcome: 'cancelled', ms: 10 })
    // A late request to cancel would arrive before the outcome.
    setTimeout(() => res.end(), 200)
  })
  await page.getByRole('button', { name: 'Run as Ana' }).click()
  await asked.promise
  const cancelled = page.waitForResponse((one) => one.request().method() === 'DELETE')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await cancelled
  ended.resolve(undefined)
  await page.getByText('cancelled').waitFor()
  t.equal(cancels, 1)
})

t.test(
  'try: a run that ends while the user cancels shows its result',
  { skip: missingBrowser },
  async (t) => {
    const { page, fixture, followed } = await open(t, 'files_read')
    fixture.handlers.set('DELETE tries/run-1', () => 404)
    await page.getByRole('button', { name: 'Run as Ana' }).click()
    const send = await followed()
    const late = page.waitForResponse((one) => one.request().method() === 'DELETE')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await late
    send({ type: 'done', outcome: 'success', result: '{"content":[]}', ms: 10 })
    await page.getByText('success').waitFor()
    t.equal(await page.getByText('not found').count(), 0)
  },
)

t.test(
  'try: runs a destructive tool once the user has typed its name',
  { skip: missingBrowser },
  async (t) => {
    const { page, started, followed } = await open(t, 'github_delete_branch')
    await page.getByRole('button', { name: 'Run as Ana' }).click()
    await page.getByText('The name that you typed does not match the tool’s name.').waitFor()
    t.equal(started.length, 0)
    await page.getByLabel(/Type its name/).fill('github_delete_branch')
    await page.getByRole('button', { name: 'Run as Ana' }).click()
    await followed()
    t.equal(started.length, 1)
  },
)

t.test(
  'try: uses a JSON field for each node that a form cannot show',
  { skip: missingBrowser },
  async (t) => {
    const deep = (level: number): unknown =>
      level === 0
        ? { type: 'string' }
        : { type: 'object', required: ['a'], properties: { a: deep(level - 1) } }
    const { page } = await open(t, 'files_read', {
      type: 'object',
      required: ['deep', 'loop', 'missing', 'any', 'merged', 'alias'],
      properties: {
        deep: deep(6),
        loop: { $ref: '#/$defs/loop' },
        missing: { $ref: 'https://example.com/elsewhere.json' },
        any: {},
        merged: { allOf: [{ type: 'object', properties: { x: { type: 'string' } } }, { required: ['x'] }] },
        alias: { $ref: '#/$defs/al~1ias' },
      },
      $defs: { loop: { $ref: '#/$defs/loop' }, 'al/ias': { type: 'integer', title: 'An alias' } },
    })
    const text = await page.locator('.try').textContent()
    t.match(text, /nested too deeply/)
    t.equal(await page.getByText('unresolved or circular reference').count(), 2)
    t.match(text, /allows any value here/)
    t.match(await page.getByRole('group', { name: /^merged/ }).textContent(), /x \* string/)
    t.match(text, /alias \* An alias integer/)
  },
)
