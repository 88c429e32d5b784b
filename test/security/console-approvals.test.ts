/** Approvals in the console require an operator with a recent login, on the console's own page. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { anonymousCaller } from '../../runtime/incoming/index.ts'
import type { Approver } from '../../runtime/console/index.ts'
import { startLoginRig } from '../helpers/console/login.ts'
import { until } from '../helpers/redis.ts'
import { approved, changed, lockOf, startChanging } from '../helpers/vmcp/pinning.ts'

interface Line {
  readonly type: string
  readonly outcome: string
  readonly subjects: Readonly<Record<string, string>>
  readonly target: object
}

async function start(t: Test, groups: readonly string[], options: { readonly now?: () => number } = {}) {
  const approvals: string[] = []
  const approver: Approver = {
    way: () => ({ way: 'file', lock: 'files', file: 'files.lock.yaml' }),
    async approve({ name }) {
      approvals.push(name)
      return 'files.lock.yaml'
    },
  }
  const logFile = join(mkdtempSync(join(t.testdir(), 'audit-')), 'audit.log')
  writeFileSync(logFile, '')
  const backend = await startChanging(t, [
    changed(approved, { description: 'Reads' }),
    changed(approved, { name: 'write' }),
  ])
  const rig = await startLoginRig({
    groups,
    approver,
    backends: { files: backend.url },
    more: {
      pinning: { onChanged: 'freeze', onNew: 'block', onRemoved: 'warn' },
      toolLocks: [lockOf('files', [approved], { name: 'files' })],
      audit: { enabled: true, logFile },
    },
    ...options,
  })
  t.teardown(() => rig.close())
  const browser = await rig.signIn()
  const { digest, approvedDigest } = await differs(rig)
  const csrf = String((await browser.api('me')).json['csrf'])
  const body = { backend: 'files', kind: 'tool', name: 'read', state: 'changed', digest, approvedDigest }
  const approve = (headers: Record<string, string> = { 'x-gatehouse-csrf': csrf }) =>
    browser.api('pins/approve', { method: 'POST', body, headers })
  const lines = (): Line[] =>
    readFileSync(logFile, 'utf8')
      .split('\n')
      .filter((line) => line.includes('console_pin_approved'))
      .map((line) => JSON.parse(line) as Line)
  return { browser, approve, approvals, csrf, digest, lines, rig }
}

/** Reads the server's own view, because not every role can read it. */
async function differs({ console }: Awaited<ReturnType<typeof startLoginRig>>) {
  const { view } = console.vmcp
  const read = () => view.pinDetail('files', 'tool', 'read')
  await until(async () => {
    await view.tools(anonymousCaller())
    return read() !== undefined
  })
  return { digest: read()?.digest ?? '', approvedDigest: read()?.approvedDigest }
}

t.test('an operator approves, and the audit line has user, item and digest', async (t) => {
  const { approve, approvals, lines, digest } = await start(t, ['operators'])
  t.match(await approve(), { status: 200, json: { file: 'files.lock.yaml' } })
  t.same(approvals, ['read'])
  t.match(lines(), [
    { outcome: 'success', subjects: { user_id: 'alice' }, target: { name: 'files tool read', digest } },
  ])
})

for (const groups of [[], ['viewers'], ['auditors'], ['viewers', 'auditors']])
  t.test(`rejected with the groups ${groups.join(', ') || 'none'}`, async (t) => {
    const { approve, approvals, lines, browser, digest } = await start(t, groups)
    t.match(await approve(), { status: 403, json: { code: 'FORBIDDEN' } })
    t.same(approvals, [])
    t.match(lines(), [{ outcome: 'denied', subjects: { user_id: 'alice' }, target: { digest } }])
    const item = await browser.api('pins/item?backend=files&kind=tool&name=read')
    t.equal(item.status, groups.length > 0 ? 200 : 403)
    t.notOk('approval' in item.json, 'only approvers see how to approve')
    t.equal((await browser.api('pins')).status, item.status)
    const tools = (await browser.api('tools')).json['items'] as readonly { name: string }[]
    t.same(
      tools.map(({ name }) => name),
      groups.length > 0 ? ['files_read', 'files_write'] : ['files_read'],
      'unapproved definitions require a role',
    )
  })

t.test('rejected without the CSRF value, from another page, and from a form', async (t) => {
  const { approve, approvals, csrf } = await start(t, ['operators'])
  const own = { 'x-gatehouse-csrf': csrf }
  t.match(await approve({}), { status: 403, json: { code: 'CSRF_REFUSED' } })
  t.match(await approve({ 'x-gatehouse-csrf': `${csrf.slice(0, -1)}_` }), { status: 403 })
  t.match(await approve({ ...own, origin: 'https://evil.example' }), { status: 403 })
  t.match(await approve({ ...own, 'sec-fetch-site': 'cross-site' }), { status: 403 })
  t.match(await approve({ ...own, 'content-type': 'text/plain' }), { status: 415 })
  t.same(approvals, [])
})

t.test('rejected with a login from an hour ago', async (t) => {
  let now = Date.now()
  const { approve, approvals, lines } = await start(t, ['operators'], { now: () => now })
  now += 20 * 60_000
  t.match(await approve(), { status: 403, json: { code: 'LOGIN_TOO_OLD' } })
  t.same(approvals, [])
  t.match(lines(), [{ outcome: 'denied' }])
})
