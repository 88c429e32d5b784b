/** Attempts to get an unreviewed definition approved: long texts, digits, a lock that changed, unusual names. */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { makeApprover } from '../../../../runtime/tools/lock/approval/approver.ts'
import { changeOf } from '../../../../runtime/tools/lock/approval/change.ts'
import { vmcpEnvironment } from '../../../../runtime/config/index.ts'
import { type ApprovalRig, lockText, startApprovals } from '../../../helpers/console/approvals.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'
import { approved, changed, other } from '../../../helpers/vmcp/pinning.ts'

const before = { tools: [approved, other] }
const item = async (rig: ApprovalRig, name = 'read') =>
  (await rig.console.api(`pins/item?backend=files&kind=tool&name=${encodeURIComponent(name)}`)).json

t.test('the complete difference is shown, even at the end of long lines and after many lines', async (t) => {
  const description = `${'fine '.repeat(2_000)}HIDDEN-IN-LINE\n${'fine\n'.repeat(2_000)}HIDDEN-BELOW`
  const rig = await startApprovals(t, lockText(before), {
    tools: [changed(approved, { description }), other],
  })
  const [{ diff } = { diff: '' }] = (await item(rig))['diff'] as { diff: string }[]
  t.match(diff, /HIDDEN-IN-LINE/)
  t.match(diff, /HIDDEN-BELOW/)
  t.notMatch(diff, /more lines|characters\)/)
})

t.test('a difference that is longer than the page can show cannot be approved there', async (t) => {
  const description = `${'fine '.repeat(90_000)}HIDDEN`
  const rig = await startApprovals(t, lockText(before), {
    tools: [changed(approved, { description }), other],
  })
  t.match(await item(rig), { approval: { way: 'none', why: /too long for the page/ } })
  const [drift] = await rig.drift()
  if (!drift) throw new Error('nothing differs')
  t.match(await rig.approve(drift), { status: 409, json: { code: 'LOCK_NOT_WRITTEN', title: /too long/ } })
  t.equal(rig.read(), lockText(before))
})

t.test('numbers that differ beyond the precision of a double are shown as different', async (t) => {
  const numbered = (n: string) =>
    `{"name":"read","inputSchema":{"type":"object","properties":{"n":{"maximum":${n}}}}}`
  const rig = await startApprovals(t, lockText({ tools: [numbered('9007199254740993')] }), {
    tools: [numbered('9007199254740992')],
  })
  t.match(await item(rig), {
    diff: [{ part: 'input', diff: /-\s+"maximum": 9007199254740993\n\+\s+"maximum": 9007199254740992/ }],
  })
})

t.test('a lock that changed between review and approval is not overwritten', async (t) => {
  const offered = changed(approved, { description: 'Reads' })
  const rig = await startApprovals(t, lockText(before), { tools: [offered, other] })
  const [seen] = await rig.drift()
  if (!seen) throw new Error('nothing differs')
  const edit = lockText({ tools: [changed(approved, { description: 'Reads one file' }), other] })
  writeFileSync(rig.file, edit)
  rig.reload()
  t.equal(rig.console.vmcp.view.pinDetail('files', 'tool', 'read')?.changing, true, 'not in force yet')
  await until(async () => (await rig.drift())[0]?.approvedDigest !== seen.approvedDigest)
  t.match(await rig.approve(seen), {
    status: 409,
    json: { code: 'APPROVAL_STALE', title: /lock has changed/ },
  })
  t.match(await rig.approve(seen, { approvedDigest: undefined }), { status: 409 }, 'rejected without it, too')
  t.match(await rig.approve(seen, { approvedDigest: 'x' }), { status: 400 })
  t.equal(rig.read(), edit)
  const [again] = await rig.drift()
  if (!again) throw new Error('nothing differs')
  t.match(await rig.approve(again), { status: 200 })
})

t.test('an approval of an item that the lock no longer contains changes no other item', (t) => {
  const reviewed = { kind: 'tool', name: 'gone', offered: undefined, perCaller: false } as const
  const spec = {
    tools: [
      { name: 'a', definition: { name: 'a' } },
      { name: 'b', definition: { name: 'b' } },
    ],
  }
  for (const state of ['removed', 'changed'] as const)
    t.throws(() => changeOf(spec, { ...reviewed, state }), { code: 'APPROVAL_STALE' }, state)
  t.throws(() => changeOf(spec, { ...reviewed, name: 'a', state: 'new', offered: '{"name":"a"}' }), {
    code: 'APPROVAL_STALE',
  })
  const instructions = { ...reviewed, kind: 'instructions', name: '' } as const
  t.throws(() => changeOf(spec, { ...instructions, state: 'removed' }), { code: 'APPROVAL_STALE' })
  t.end()
})

t.test('names with a meaning for programs, shells, paths and readers are written safely', async (t) => {
  const names = ['__proto__', 'constructor', '..', '-rf', 'a\u202eb', '{{x}}', `'"\`$(id)`, 'é\u0301', '#']
  const named = (name: string) => changed(other, { name, description: 'Odd' })
  const rig = await startApprovals(t, lockText(before), { tools: [approved, other, ...names.map(named)] })
  const drift = await rig.drift()
  t.same(drift.map(({ name }) => name).sort(), [...names].sort())
  for (const one of drift) t.match(await rig.approve(one), { status: 200 }, JSON.stringify(one.name))
  await rig.takeUp()
  t.same(await rig.drift(), [])
  t.notMatch(rig.read(), /\u202e/u)
})

t.test('a name that UTF-8 cannot encode is reported and never written', async (t) => {
  const odd = `{"name":"\\ud800","inputSchema":{"type":"object"}}`
  const rig = await startApprovals(t, lockText(before), {
    tools: [changed(approved, { description: 'Reads' }), other, odd],
  })
  const names = (await rig.drift()).map(({ name }) => name)
  t.ok(names.includes('read'))
  const reviewed = { kind: 'tool', name: '\ud800', state: 'new', offered: odd, perCaller: false } as const
  t.throws(() => changeOf({ tools: [] }, reviewed), { code: 'LOCK_NOT_WRITTEN', message: /cannot contain/ })
  const lock = { backend: 'files', name: 'files', tools: [] }
  const pod = await makeApprover({ env: { [vmcpEnvironment.namespace]: 'team' }, toolLocks: () => [lock] })
  const drift = {
    ...reviewed,
    backend: 'files',
    parts: [],
    digest: '',
    approved: undefined,
    approvedDigest: undefined,
    diff: [],
    changing: false,
  }
  t.match(pod.way(drift), { way: 'none', why: /cannot contain/ })
  t.match(pod.way({ ...drift, kind: 'instructions', name: '', offered: '"\\ud800"' }), { way: 'none' })
  t.match(
    pod.way({
      ...drift,
      name: 'x',
      offered: changed(other, { name: 'x', description: 'y'.repeat(300_000) }),
    }),
    { way: 'none', why: /too long to copy/ },
  )
})

t.test('files with other encodings and line endings keep them', async (t) => {
  const offered = { tools: [changed(approved, { description: 'Reads' }), other] }
  const rig = await startApprovals(t, lockText(before), offered)
  const [drift] = await rig.drift()
  if (!drift) throw new Error('nothing differs')
  const latin = Buffer.from(`# caf\u00e9\n---\n${lockText(before)}`, 'latin1')
  writeFileSync(rig.file, latin)
  t.match(await rig.approve(drift), { status: 409, json: { code: 'LOCK_NOT_WRITTEN', title: /not UTF-8/ } })
  t.ok(readFileSync(rig.file).equals(latin), 'its bytes are unchanged')
  const dos = (text: string): string => text.replaceAll('\n', '\r\n')
  writeFileSync(rig.file, dos(`\ufeff# ours\n${lockText(before)}`))
  t.match(await rig.approve(drift), { status: 200 })
  t.equal(rig.read(), dos(`\ufeff# ours\n${lockText(offered)}`))
})

t.test('manifests from standard input are reported as such', async (t) => {
  const rig = await startApprovals(t, lockText(before), { tools: [changed(approved, { title: 'x' }), other] })
  const approver = await makeApprover({
    env: { [vmcpEnvironment.consoleManifests]: '[]', [vmcpEnvironment.namespace]: 'default' },
    toolLocks: () => rig.console.vmcp.view.toolLocks(),
  })
  const detail = rig.console.vmcp.view.pinDetail('files', 'tool', 'read')
  if (!detail) throw new Error('nothing differs')
  t.match(approver.way(detail), { way: 'none', why: /standard input/ })
})

t.test('definitions that differ per caller are approved side by side', async (t) => {
  const forTeam = (team: number) => changed(approved, { description: `Reads for team ${team}` })
  const own = (headers: Record<string, unknown>) => Number(headers['x-team'] ?? 0)
  const rig = await startApprovals(
    t,
    lockText(before),
    ({ headers }) => ({ tools: [own(headers) > 0 ? forTeam(own(headers)) : approved, other] }),
    { more: { passthroughHeaders: ['x-team'] } },
  )
  const as = (team: number, method: string, params = {}) =>
    stateless(rig.console.vmcp.url, method, params, { headers: { 'x-team': String(team) } })
  for (let team = 1; team <= 8; team++) {
    await as(team, 'tools/list')
    await until(async () => (await rig.drift()).length === 1)
    const [drift] = await rig.drift()
    if (!drift) throw new Error('nothing differs')
    t.match(await rig.approve(drift), { status: 200 }, `team ${team}`)
    await rig.takeUp()
    t.same(await rig.drift(), [])
  }
  t.equal(rig.read().match(/Reads for team/g)?.length, 8)
  t.match(rig.read(), /Reads a file/, 'the definitions of other teams stay approved')
  await as(9, 'tools/list')
  await until(async () => (await rig.drift()).length === 1)
  const [ninth] = await rig.drift()
  if (!ninth) throw new Error('nothing differs')
  t.match(await rig.approve(ninth), { status: 409, json: { code: 'LOCK_NOT_WRITTEN', title: /8 variants/ } })
  t.match((await as(8, 'tools/list')).text, /Reads for team 8/, 'team 8 sees the approved definition')
  t.match((await as(9, 'tools/list')).text, /Reads a file/, 'and team 9 sees the frozen one')
})
