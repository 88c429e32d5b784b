/**
 * The files that approvals are written to: other documents, lists, JSON, concurrent edits, links, and files that cannot
 * be written.
 */
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseAllDocuments } from 'yaml'
import {
  type ApprovalRig,
  type Drifted,
  lockText,
  startApprovals,
} from '../../../helpers/console/approvals.ts'
import { approved, changed, other } from '../../../helpers/vmcp/pinning.ts'

const before = { tools: [approved, other] }
const after = { tools: [changed(approved, { description: 'Reads' }), other] }
const manifest = (text: string) => parseAllDocuments(text)[0]?.toJS() as Record<string, unknown>

async function only(rig: ApprovalRig): Promise<Drifted> {
  const [drift] = await rig.drift()
  if (!drift) throw new Error('nothing differs')
  return drift
}

/** Approves the difference and reloads. */
async function approveAll(t: Test, rig: ApprovalRig): Promise<void> {
  for (const drift of await rig.drift()) t.match(await rig.approve(drift), { status: 200 })
  await rig.takeUp()
  t.same(await rig.drift(), [], 'in sync')
}

t.test('other documents, comments and settings of a file stay as they are', async (t) => {
  const head = '# ours\nkind: Other\nvalue:   {a: 0x10,   b: "\\u200b"}   # odd, and stays\n---\n# the lock\n'
  const tail = '---\n{"kind": "Third",\n  "x": 1.0}\n...\n# end\n'
  const lock = lockText(before)
    .replace('metadata:\n', 'metadata:\n  # whose it is\n  labels: { team: a }\n')
    .replace('    - name: read\n', '    # Asked for by Ana.\n    - name: read\n')
    .replace(/$/, '      note: |\n        since May\n')
    .replace('spec:\n', 'spec:\n  onChanged: block\n')
  const rig = await startApprovals(t, head + lock + tail, after)
  const text = rig.read()
  await approveAll(t, rig)
  const next = rig.read()
  t.ok(next.startsWith(head), 'the text before it')
  t.ok(next.endsWith(tail), 'the text after it')
  t.equal(next, text.replace('description: Reads a file', 'description: Reads'), 'a single changed line')
})

t.test('a lock can be in a List, in flow style, in a JSON file, or in a subfolder', async (t) => {
  const list = { apiVersion: 'v1', kind: 'List', items: [{ kind: 'Other' }, manifest(lockText(before))] }
  const texts = {
    'list.yaml': JSON.stringify(list),
    'flow.yaml': `--- ${JSON.stringify(manifest(lockText(before)))}\n`,
    'a/b/lock.json': JSON.stringify(
      manifest(lockText({ tools: [changed(approved, { title: '\u200bx' }), other] })),
    ),
  }
  for (const [file, text] of Object.entries(texts))
    await t.test(file, async (t) => {
      const rig = await startApprovals(
        t,
        text,
        { tools: [changed(approved, { description: 'R\u202e' }), other] },
        { file },
      )
      await approveAll(t, rig)
      t.notMatch(rig.read(), /[\u200b\u202e]/u, 'hidden characters are escaped')
      t.equal(readdirSync(join(rig.file, '..')).length, 1, 'no other file is left')
    })
})

t.test('a definition that a manifest cannot hold as an object is stored as text', async (t) => {
  const big =
    '{"name":"read","inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993}}}}'
  const lone = '{"name":"list","description":"\\ud800","inputSchema":{"type":"object"}}'
  const rig = await startApprovals(t, lockText(before), { tools: [big, lone] })
  await approveAll(t, rig)
  t.equal(rig.read(), lockText({ tools: [big, lone] }))
})

t.test('texts that look like YAML stay text', async (t) => {
  const description = '---\n...\n*a &b !!x | > # no\n\ttab\r\n- "x\': y\\\n{{a}}\u0085\u2028\ufeff'
  const name = '&a *b: [c]'
  const tools = [changed(approved, { description }), other, changed(other, { name, description: '? !!js' })]
  const rig = await startApprovals(t, lockText(before), { tools, instructions: `${description}\n \n` })
  await approveAll(t, rig)
})

t.test('a file edit that is not loaded yet is not overwritten', async (t) => {
  const rig = await startApprovals(t, lockText(before), after)
  const edit = lockText({ tools: [changed(approved, { description: 'Edited' }), other] })
  writeFileSync(rig.file, edit)
  t.match(await rig.approve(await only(rig)), {
    status: 409,
    json: { code: 'APPROVAL_STALE', title: /file with the lock/ },
  })
  t.equal(rig.read(), edit)
  writeFileSync(rig.file, 'kind: [')
  t.match(await rig.approve(await only(rig)), {
    status: 409,
    json: { code: 'LOCK_NOT_WRITTEN', title: /not valid YAML/ },
  })
  t.equal(rig.read(), 'kind: [')
  const elsewhere = lockText({ tools: [approved, changed(other, { description: 'Edited' })] })
  writeFileSync(rig.file, elsewhere)
  t.match(await rig.approve(await only(rig)), { status: 200 }, 'an edit of another item is kept')
  t.match(rig.read(), /description: Edited/)
})

t.test('a lock that is missing, duplicated, invalid, or written with anchors is not changed', async (t) => {
  const rig = await startApprovals(t, lockText(before), after)
  const drift = await only(rig)
  const tries: Record<string, readonly [string, RegExp]> = {
    'another name': [
      lockText(before).replace('name: files\n', 'name: others\n'),
      /no longer contain MCPToolLock files/,
    ],
    'another namespace': [
      lockText(before).replace('  name: files\n', '  name: files\n  namespace: x\n'),
      /no longer contain MCPToolLock files/,
    ],
    twice: [`${lockText(before)}---\n${lockText(before)}`, /several/],
    invalid: [
      lockText(before).replace('spec:\n', 'spec:\n  onChanged: nothing\n'),
      /not be valid.*onChanged/s,
    ],
    anchors: [
      lockText(before)
        .replace('      definition:\n        name: read', '      definition: &a\n        name: read')
        .replace(/$/, '  prompts:\n    - name: read\n      definition: *a\n'),
      /cannot be edited safely/,
    ],
  }
  for (const [what, [text, why]] of Object.entries(tries)) {
    writeFileSync(rig.file, text)
    t.match(await rig.approve(drift), { status: 409, json: { code: 'LOCK_NOT_WRITTEN', title: why } }, what)
    t.equal(rig.read(), text, `${what}: nothing was written`)
  }
  const { json } = await rig.console.api('pins/item?backend=files&kind=tool&name=read')
  t.match(json, { approval: { way: 'file' } })
  writeFileSync(rig.file, '')
  t.match((await rig.console.api('pins/item?backend=files&kind=tool&name=read')).json, {
    approval: { way: 'none', why: /contains no documents/ },
  })
})

t.test('a link stays a link, the mode stays, and a read-only file is left alone', async (t) => {
  const rig = await startApprovals(t, lockText(before), after)
  const real = join(mkdtempSync(join(rig.folder, '..', 'real-')), 'lock.yaml')
  renameSync(rig.file, real)
  symlinkSync(real, rig.file)
  chmodSync(real, 0o640)
  const drift = await only(rig)
  chmodSync(real, 0o440)
  t.match(await rig.approve(drift), { status: 409, json: { code: 'LOCK_NOT_WRITTEN', title: /read-only/ } })
  chmodSync(real, 0o640)
  t.match(await rig.approve(drift), { status: 200 })
  t.ok(lstatSync(rig.file).isSymbolicLink())
  t.equal(statSync(real).mode & 0o777, 0o640)
  t.equal(readFileSync(real, 'utf8'), lockText(after))
})

t.test('a concurrent approval is rejected until the other one is done or stale', async (t) => {
  const rig = await startApprovals(t, lockText(before), after)
  const mark = join(rig.folder, '.files.lock.yaml.approval')
  writeFileSync(mark, '')
  const drift = await only(rig)
  t.match(await rig.approve(drift), { status: 409, json: { title: /approve again/ } })
  t.equal(rig.read(), lockText(before))
  const longAgo = Date.now() / 1000 - 3600
  utimesSync(mark, longAgo, longAgo)
  t.match(await rig.approve(drift), { status: 200 })
  t.same(readdirSync(rig.folder), ['files.lock.yaml'])
})
