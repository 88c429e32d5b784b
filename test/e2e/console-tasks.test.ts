/** Live tasks in the console: the API for different roles, and the page in a real Chromium. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { bundleConsole } from '../../manifests/bundle/console.ts'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import { startTestConsole } from '../helpers/console/console.ts'
import { checkAccessibility, openConsole, show } from '../helpers/console/console-page.ts'
import { signedIn } from '../helpers/console/roles.ts'
import { nextPoll, taskRequest, tasksOn } from '../helpers/mcp/tasks/clients.ts'
import {
  type ExtensionBackendOptions,
  startExtensionBackend,
} from '../helpers/mcp/tasks/extension-backend.ts'
import { startSessionTaskBackend } from '../helpers/mcp/tasks/session-backend.ts'
import { openSession } from '../helpers/mcp/wire.ts'

t.setTimeout(240_000)

async function start(t: Test, options: ExtensionBackendOptions = {}, assets?: string) {
  const backend = await startExtensionBackend(options)
  const console = await startTestConsole(
    { b: backend.url },
    tasksOn(),
    assets === undefined ? {} : { assets },
  )
  t.teardown(async () => {
    await console.close()
    await backend.close()
  })
  const create = async (name: string): Promise<string> => {
    const { response } = await taskRequest(console.vmcp.url, 'tools/call', { name })
    return String(response?.result?.['taskId'])
  }
  const read = async (taskId: string) => {
    await nextPoll()
    return (await taskRequest(console.vmcp.url, 'tasks/get', { taskId })).response?.result
  }
  const list = async () => (await console.api('tasks')).json['items'] as readonly Record<string, unknown>[]
  return { backend, console, create, read, list }
}

t.test('tasks: state, owner and age of live tasks, and cancellation', async (t) => {
  const { backend, console, create, read, list } = await start(t)
  t.same(await list(), [])
  const [first, second] = [await create('b_flex'), await create('b_ask')]
  t.same(new Set((await list()).map(({ tool }) => tool)), new Set(['b_ask', 'b_flex']))
  await read(second)
  await read(second)
  const tasks = await list()
  const [flex, ask] = ['b_flex', 'b_ask'].map((tool) => tasks.find((task) => task['tool'] === tool) ?? {})
  t.match(flex, {
    backend: 'b',
    state: 'working',
    mine: true,
    caller: { sub: 'anonymous' },
    hash: /^[0-9a-f]{32}$/,
  })
  t.match(ask, { state: 'input_required' })
  t.ok(
    Date.parse(String(flex?.['startedAt'])) <= Date.now() &&
      Date.parse(String(flex?.['expiresAt'])) > Date.now(),
  )
  for (const secret of [first, second, ...backend.tasks.keys()])
    t.notMatch(JSON.stringify(tasks), secret, 'no ids')

  const cancel = (hash: unknown) => console.api(`tasks/${String(hash)}`, { method: 'DELETE' })
  t.equal((await cancel(flex?.['hash'])).status, 204)
  t.equal(backend.requests.filter(({ method }) => method === 'tasks/cancel').length, 1)
  t.match(await read(first), { status: 'cancelled' })
  t.match(await list(), [{ tool: 'b_ask' }], 'a cancelled task is not live')
  t.match((await cancel(flex?.['hash'])).json, { status: 404, title: 'unknown task' })
  t.match((await cancel('x')).json, { status: 404 })
})

t.test('tasks: a backend that rejects the cancellation', async (t) => {
  const { console, create, list } = await start(t, { rejectsCancel: true })
  await create('b_flex')
  const [task] = await list()
  const { status } = await console.api(`tasks/${String(task?.['hash'])}`, { method: 'DELETE' })
  t.equal(status, 502)
  t.match(await list(), [{ state: 'working' }])
})

t.test('tasks: a task of a session that has ended', async (t) => {
  const backend = await startSessionTaskBackend()
  const console = await startTestConsole({ s: backend.url }, tasksOn())
  t.teardown(async () => {
    await console.close()
    await backend.close()
  })
  const session = await openSession(console.vmcp.url)
  const created = await session.request('tools/call', {
    ...{ name: 's_slow', arguments: { ms: 60_000 }, task: { ttl: 60_000 } },
  })
  t.ok(created.response?.result?.['task'])
  await fetch(session.url, { method: 'DELETE', headers: session.headers })
  const list = async () => (await console.api('tasks')).json['items'] as readonly Record<string, unknown>[]
  const [task] = await list()
  const { json } = await console.api(`tasks/${String(task?.['hash'])}`, { method: 'DELETE' })
  t.equal(backend.methods.filter((method) => method === 'tasks/cancel').length, 1)
  t.match(json, { status: 404, title: 'unknown task' }, 'the backend ended the task with its session')
  t.same(await list(), [])
})

for (const [groups, sees, cancels] of [
  [[], 0, 404],
  [['viewers'], 1, 403],
  [['operators'], 1, 204],
] as const)
  t.test(`tasks: the tasks of other users, ${groups[0] ?? 'without a role'}`, async (t) => {
    const backend = await startExtensionBackend()
    t.teardown(() => backend.close())
    const browser = await signedIn(t, { groups: [...groups], backends: { b: backend.url }, more: tasksOn() })
    const { url } = (await browser.api('connect')).json
    t.ok((await taskRequest(String(url), 'tools/call', { name: 'b_flex' })).response?.result?.['taskId'])
    const items = (await browser.api('tasks')).json['items'] as readonly { readonly hash: string }[]
    t.equal(items.length, sees)
    const headers = { 'x-gatehouse-csrf': String((await browser.api('me')).json['csrf']) }
    const hash = items[0]?.hash ?? 'x'
    t.equal((await browser.api(`tasks/${hash}`, { method: 'DELETE', headers })).status, cancels)
  })

t.test('tasks: the page lists and cancels tasks', { skip: missingBrowser }, async (t) => {
  const assets = mkdtempSync(join(tmpdir(), 'gatehouse-console-'))
  t.teardown(() => rmSync(assets, { recursive: true, force: true }))
  await bundleConsole(resolve(import.meta.dirname, '../..'), assets)
  const { console, create, backend } = await start(t, {}, assets)
  const browser = await openBrowser(t)
  const { page, complaints } = await openConsole(browser, `${console.url}#launch=${console.token}`)
  await show(page, '#/tasks', /tasks/i)
  await page.getByText('No tasks are running.').waitFor()
  t.not(await create('b_flex'), 'undefined')
  const row = page.getByRole('row', { name: /b_flex.*working/ })
  await row.waitFor()
  await checkAccessibility(t, page, 'tasks')
  if (process.env['GATEHOUSE_TEST_SCREENSHOT'])
    await page.screenshot({ path: process.env['GATEHOUSE_TEST_SCREENSHOT'], fullPage: true })
  await page.getByRole('button', { name: 'Cancel the task of b_flex' }).click()
  await page.getByRole('button', { name: 'Cancel task', exact: true }).click()
  await page.getByText('No tasks are running.').waitFor()
  t.equal(backend.requests.filter(({ method }) => method === 'tasks/cancel').length, 1)
  t.same(complaints, [])
})
