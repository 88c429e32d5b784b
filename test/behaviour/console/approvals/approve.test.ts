/**
 * Approvals in the console, written to the files of `gatehouse dev`: what can be approved, by which users, and the
 * resulting file.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Drifted, lockText, startApprovals } from '../../../helpers/console/approvals.ts'
import { approved, changed, other } from '../../../helpers/vmcp/pinning.ts'

const evil = changed(approved, { description: 'Reads a file\u200b, and more' })
const fresh = changed(other, { name: 'write', description: 'Writes a file' })
const prompt = '{"name":"ask","description":"Asks"}'
const otherPrompt = '{"name":"ask","description":"Asks twice"}'
const template = '{"uriTemplate":"file:///{path}","name":"file"}'
const before = { tools: [approved, other], prompts: [prompt], instructions: 'Read first.' }
const after = {
  tools: [evil, fresh],
  prompts: [otherPrompt],
  templates: [template],
  instructions: 'Read first.\nThen\u202e write.',
}
const textOf = ({ kind, name, state }: Drifted) => `${kind} ${name} ${state}`.replace('  ', ' ')

t.test(
  'each difference is approved separately, and the file equals the output of gatehouse lock',
  async (t) => {
    const logFile = join(t.testdir(), 'audit.log')
    const rig = await startApprovals(t, lockText(before), after, {
      more: { audit: { enabled: true, logFile } },
    })
    const drift = await rig.drift()
    t.same(drift.map(textOf), [
      'instructions changed',
      'prompt ask changed',
      'resourceTemplate file:///{path} new',
      'tool list removed',
      'tool read changed',
      'tool write new',
    ])
    for (const one of drift) t.match(await rig.approve(one), { status: 200, json: { file: rig.file } })
    t.equal(rig.read(), lockText(after))
    t.notMatch(rig.read(), /[\u200b\u202e]/u, 'hidden characters are escaped')
    await rig.takeUp()
    t.same(await rig.drift(), [])
    const lines = readFileSync(logFile, 'utf8')
      .split('\n')
      .filter((line) => line.includes('console_pin_approved'))
      .map((line) => JSON.parse(line))
    const read = drift.find(({ name }) => name === 'read')
    t.equal(lines.length, drift.length)
    t.match(lines[4], {
      outcome: 'success',
      subjects: { user_id: 'anonymous' },
      target: { name: 'files tool read', digest: read?.digest ?? '' },
    })
  },
)

t.test('the detail shows the difference by part, and the file of the approval', async (t) => {
  const rig = await startApprovals(t, lockText(before), after)
  const { json } = await rig.console.api('pins/item?backend=files&kind=tool&name=read')
  t.match(json, {
    state: 'changed',
    parts: ['text'],
    diff: [
      { part: 'text', diff: /-description: Reads a file\n\+description: Reads a file\\u\{200b\}, and more/ },
    ],
    approval: { way: 'file', lock: 'files', file: rig.file },
  })
  t.match(await rig.console.api('pins/item?backend=files&kind=instructions&name='), { status: 200 })
  for (const query of ['backend=files&kind=tool&name=nothing', 'backend=x&kind=tool&name=read', 'kind=x'])
    t.equal((await rig.console.api(`pins/item?${query}`)).status, 404)
  const { json: list } = await rig.console.api('pins?state=removed')
  t.match(list, {
    enabled: true,
    total: 1,
    items: [{ name: 'list' }],
    locks: [{ backend: 'files', lock: 'ok', counts: { changed: 3, new: 2, removed: 1 } }],
  })
})

t.test('tools that pinning blocks are listed with the reason', async (t) => {
  const rig = await startApprovals(t, lockText(before), after, {
    more: { pinning: { onChanged: 'block', onNew: 'block', onRemoved: 'warn' } },
  })
  const { json } = await rig.console.api('tools')
  t.match(json, {
    total: 2,
    tokens: 0,
    items: [
      {
        name: 'read',
        pin: 'changed',
        hidden: /^pinning: the definition differs from the approved definition/,
      },
      { name: 'write', pin: 'new', hidden: /^pinning: the tool is new/ },
    ],
  })
  t.match((await rig.console.api('tools/read')).json, { raw: evil, drift: [{ part: 'text' }] })
})

t.test(
  'an approval of a definition that is not the offered one is rejected and writes nothing',
  async (t) => {
    const rig = await startApprovals(t, lockText(before), after)
    const drift = await rig.drift()
    const [read, write] = ['read', 'write'].map((name) => drift.find((one) => one.name === name))
    if (!read || !write) throw new Error('no such drift')
    const digest = `sha256:${'0'.repeat(64)}`
    const stale = { status: 409, json: { code: 'APPROVAL_STALE' } }
    t.match(await rig.approve(read, { digest }), stale, 'another digest')
    t.match(await rig.approve(read, { digest: write.digest }), stale, 'the digest of another tool')
    t.match(await rig.approve(read, { state: 'new' }), stale, 'another state')
    t.match(await rig.approve(read, { name: 'list' }), stale, 'another tool')
    t.match(await rig.approve(read, { name: 'nothing' }), stale, 'no such tool')
    t.match(await rig.approve(read, { backend: 'nothing' }), stale, 'no such backend')
    for (const wrong of [
      { digest: 'x' },
      { digest: 1 },
      { kind: '__proto__' },
      { state: 'pinned' },
      { name: null },
    ])
      t.match(await rig.approve(read, wrong), { status: 400 }, JSON.stringify(wrong))
    await rig.offer({ ...after, tools: [changed(approved, { description: 'Another still' }), fresh] })
    t.match(
      await rig.approve(read),
      { ...stale, json: { code: 'APPROVAL_STALE', title: /now offers a different definition/ } },
      'it has changed since',
    )
    await rig.offer({ ...after, tools: [approved, fresh] })
    t.match(
      await rig.approve(read),
      { ...stale, json: { code: 'APPROVAL_STALE', title: /no longer differs/ } },
      'it matches the approval again',
    )
    t.equal(rig.read(), lockText(before))
  },
)

t.test(
  'of two simultaneous approvals, both are written for two items, and one for the same item',
  async (t) => {
    const rig = await startApprovals(t, lockText(before), after)
    const drift = await rig.drift()
    const statuses = (replies: readonly { status: number }[]) =>
      replies.map(({ status }) => status).sort((a, b) => a - b)
    const [read, write] = ['read', 'write'].map((name) => drift.find((one) => one.name === name))
    if (!read || !write) throw new Error('no such drift')
    t.same(statuses(await Promise.all([rig.approve(read), rig.approve(read)])), [200, 409])
    t.match(await rig.approve(read), { status: 409, json: { code: 'APPROVAL_STALE' } }, 'not reloaded yet')
    t.same(
      statuses(await Promise.all([rig.approve(write), ...drift.slice(0, 3).map((one) => rig.approve(one))])),
      [200, 200, 200, 200],
    )
    await rig.takeUp()
    t.same((await rig.drift()).map(textOf), ['tool list removed'])
  },
)
