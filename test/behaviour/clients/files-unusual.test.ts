/** Unusual files and failing disks: links stay links, and files that a replacement would damage stay unchanged. */
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  addEntry,
  type OperationStep,
  removeEntry,
  undoOperation,
} from '../../../runtime/toolkit/client-files/operate.ts'
import { entry, original, setUp } from './rig.ts'

t.setTimeout(120_000)

t.test('links: a file created below a linked folder is recognized afterwards', async (t) => {
  const { folder, on } = setUp(t)
  mkdirSync(join(folder, 'real'))
  symlinkSync('real', join(folder, 'linked'))
  const linked = { location: { ...on().location, file: join(folder, 'linked/new/mcp.json') } }
  t.equal((await addEntry(on(linked), entry)).outcome, 'created')
  t.equal((await removeEntry(on(linked))).outcome, 'removed', 'without --replace')
  t.equal((await undoOperation(on(linked))).outcome, 'created')
})

t.test('links: a symbolic link stays one, and its target is replaced', async (t) => {
  const { folder, file, on } = setUp(t)
  const link = join(folder, 'link.json')
  symlinkSync('mcp.json', link)
  const linked = { location: { ...on().location, file: link } }
  await addEntry(on(linked), entry)
  t.equal(realpathSync(link), file)
  t.match(readFileSync(file, 'utf8'), '"gatehouse"')
  await removeEntry(on())
  t.equal(readFileSync(file, 'utf8'), original, 'one file has one history, by either path')
})

t.test('files that a replacement would damage are rejected and stay unchanged', async (t) => {
  const refused = async (name: string, prepare: (file: string, folder: string) => void, message: RegExp) => {
    await t.test(name, async (t) => {
      const { file, folder, on } = setUp(t)
      prepare(file, folder)
      const before = existsSync(file) && statSync(file).isFile() ? readFileSync(file) : undefined
      await t.rejects(addEntry(on(), entry), { code: 'INVALID_CONFIG', message })
      if (before) t.ok(readFileSync(file).equals(before), 'unchanged')
      t.notOk(
        readdirSync(folder).some((each) => each.endsWith('.tmp')),
        'no half-written file',
      )
    })
  }
  await refused('read-only', (file) => chmodSync(file, 0o444), /is read-only/)
  await refused(
    'several hard links',
    (file, folder) => linkSync(file, join(folder, 'twin')),
    /has several hard links/,
  )
  await refused(
    'too large',
    (file) => writeFileSync(file, `{"a": "${'x'.repeat(9 * 1024 * 1024)}"}`),
    /is larger than 8 MiB/,
  )
  await refused(
    'UTF-16',
    (file) => writeFileSync(file, Buffer.from('\ufeff{}', 'utf16le')),
    /is UTF-16; save it as UTF-8/,
  )
  await refused(
    'no UTF-8',
    (file) => writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d])),
    /is not valid UTF-8/,
  )
  await refused(
    'half-written',
    (file) => writeFileSync(file, original.slice(0, 60)),
    /mcp\.json:\d+:\d+: not valid JSON/,
  )
})

t.test('paths that are not files are rejected', async (t) => {
  const { folder, on } = setUp(t)
  const at = (file: string) => on({ location: { ...on().location, file } })
  mkdirSync(join(folder, 'dir'))
  await t.rejects(addEntry(at(join(folder, 'dir')), entry), { message: /is a folder, not a file/ })
  symlinkSync('nowhere', join(folder, 'dangling'))
  await t.rejects(addEntry(at(join(folder, 'dangling')), entry), {
    message: /is a dangling symbolic link/,
  })
  await t.rejects(addEntry(at('/dev/null'), entry), { message: /is not a regular file/ })
  await t.rejects(addEntry(at(join(folder, 'mcp.json/x.json')), entry), {
    message: /cannot read .*: a part of the path is not a directory/,
  })
})

t.test(
  'a file that changes during an operation is read again, and one that keeps changing is left alone',
  async (t) => {
    const { file, read, on } = setUp(t)
    let changes = 0
    const meddle =
      (limit: number, at: OperationStep = 'read') =>
      (step: string) => {
        if (step === at && changes < limit) writeFileSync(file, original.replace('mine', `mine ${++changes}`))
      }
    for (const at of ['read', 'recorded', 'written'] as const) {
      changes = 0
      await addEntry(on({ onStep: meddle(2, at) }), entry)
      t.match(read(), /mine 2[\s\S]*"gatehouse"/, `on top of the newest version, changed at ${at}`)
      await undoOperation(on())
      t.match(read(), original.replace('mine', 'mine 2'))
      await t.rejects(undoOperation(on()), { message: /there is no change to undo/ })
    }
    changes = 0
    await t.rejects(addEntry(on({ onStep: meddle(100) }), entry), {
      message: /was changed by another program during each of three attempts/,
    })
    t.notMatch(read(), '"gatehouse"')
  },
)

t.test('a disk error is reported, and the file stays intact', async (t) => {
  const { file, read, on } = setUp(t)
  const state = on().records
  mkdirSync(state)
  // A folder at the path of the records' draft. It causes the same error as a full or broken disk.
  const id = (await import('node:crypto')).createHash('sha256').update(file).digest('hex').slice(0, 24)
  mkdirSync(join(state, `${id}.json`))
  await t.rejects(addEntry(on(), entry), { message: /cannot write the records in / })
  t.equal(read(), original)
})
