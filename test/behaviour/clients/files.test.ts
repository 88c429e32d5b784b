/** Operations on the files of MCP clients. No content is ever lost, even when the disk fails or a process is killed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  addEntry,
  type OperationResult,
  removeEntry,
  undoOperation,
} from '../../../runtime/toolkit/client-files/operate.ts'
import { hashOfEntry, Records } from '../../../runtime/toolkit/client-files/records.ts'
import { maskedDiff } from '../../../runtime/toolkit/clients/index.ts'
import { entry, original, setUp } from './rig.ts'

t.setTimeout(120_000)

t.test('add and remove: the file is restored with its mode, and no extra file remains', async (t) => {
  const { file, folder, read, on } = setUp(t)
  chmodSync(file, 0o640)
  const added = await addEntry(on(), entry)
  t.equal(added.outcome, 'changed')
  t.match(read(), '"gatehouse"')
  t.equal(statSync(file).mode & 0o777, 0o640)
  t.equal(readFileSync(added.backup ?? '', 'utf8'), original)
  t.equal(statSync(added.backup ?? '').mode & 0o777, 0o600)
  t.equal(statSync(join(folder, 'state')).mode & 0o777, 0o700)
  t.equal((await addEntry(on(), entry)).outcome, 'none', 'again')
  t.equal((await removeEntry(on())).outcome, 'changed')
  t.equal(read(), original)
  t.equal((await removeEntry(on())).outcome, 'none', 'again')
  t.strictSame(readdirSync(folder).toSorted(), ['mcp.json', 'state'])
})

t.test('add and remove: a byte order mark, CRLF and a missing final newline stay', async (t) => {
  const contents = '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t},\r\n}'
  const { read, on } = setUp(t, contents)
  await addEntry(on(), entry)
  t.ok(read().startsWith('\ufeff{\r\n'))
  t.notMatch(read(), /[^\r]\n/)
  await removeEntry(on())
  t.equal(read(), contents)
})

t.test('add and remove: a new file is created for its owner only, and removed again', async (t) => {
  const { file, on } = setUp(t)
  const missing = { location: { ...on().location, file: join(file, '../new/mcp.json') } }
  t.equal((await addEntry(on(missing), entry)).outcome, 'created')
  t.equal(statSync(missing.location.file).mode & 0o777, 0o600)
  t.equal((await removeEntry(on(missing))).outcome, 'removed')
  t.notOk(existsSync(missing.location.file))
  t.equal((await undoOperation(on(missing))).outcome, 'created', 'and the file is restored')
  t.match(readFileSync(missing.location.file, 'utf8'), '"gatehouse"')
})

t.test('add and remove: the address may change in between', async (t) => {
  const { read, on } = setUp(t)
  await addEntry(on(), entry)
  await addEntry(on(), { url: 'http://127.0.0.1:9/mcp' })
  t.match(read(), '127.0.0.1:9/')
  await removeEntry(on())
  t.equal(read(), original)
})

t.test('remove: changes by other programs in between stay', async (t) => {
  const { file, read, on } = setUp(t)
  await addEntry(on(), entry)
  writeFileSync(file, read().replace('"command": "x"', '"command": "y"').replace('// mine', '// mine, too'))
  await removeEntry(on())
  t.equal(read(), original.replace('"command": "x"', '"command": "y"').replace('// mine', '// mine, too'))
})

t.test('a foreign entry is only replaced on request, and then restored', async (t) => {
  const theirs = '{"mcpServers": {"gatehouse": {"url": "https://theirs.example"}}}'
  const { read, on } = setUp(t, theirs)
  await t.rejects(addEntry(on(), entry), {
    code: 'INVALID_CONFIG',
    message: /"gatehouse" already exists and was not written by gatehouse/,
  })
  await t.rejects(removeEntry(on()), { code: 'INVALID_CONFIG' })
  t.equal(read(), theirs)
  await addEntry(on({ replace: true }), entry)
  t.match(read(), '127.0.0.1')
  await removeEntry(on())
  t.equal(read(), theirs, 'the previous entry is restored')
})

t.test('an entry that was changed after it was added is left alone', async (t) => {
  const { file, read, on } = setUp(t)
  await addEntry(on(), entry)
  writeFileSync(file, read().replace(':4483', ':5555'))
  const changed = read()
  await t.rejects(removeEntry(on()), { message: /or has changed since/ })
  await t.rejects(undoOperation(on()), { message: /the entry has changed since; use --replace/ })
  t.equal(read(), changed)
  await removeEntry(on({ replace: true }))
  t.equal(read(), original)
})

t.test('undo: reverts the operations one by one, exactly', async (t) => {
  const { read, on } = setUp(t)
  await addEntry(on(), entry)
  const added = read()
  await removeEntry(on())
  await undoOperation(on())
  t.equal(read(), added)
  await undoOperation(on())
  t.equal(read(), original)
  await t.rejects(undoOperation(on()), { message: /there is no change to undo/ })
})

t.test('undo: when the file has changed since, only the entry is reverted', async (t) => {
  const { file, read, on } = setUp(t, '{"mcpServers": {"gatehouse": {"url": "https://theirs.example"}}}')
  await addEntry(on({ replace: true }), entry)
  writeFileSync(file, read().replace('{"mcpServers"', '{"new": 1, "mcpServers"'))
  await undoOperation(on())
  t.strictSame(JSON.parse(read()), { new: 1, mcpServers: { gatehouse: { url: 'https://theirs.example' } } })
})

t.test('dry run: nothing is written, including records', async (t) => {
  const { folder, read, on } = setUp(t)
  const done = await addEntry(on({ dryRun: true }), entry)
  t.ok(done.changes.length > 0)
  t.equal(read(), original)
  t.strictSame(readdirSync(folder), ['mcp.json'])
})

t.test('permissions: the mode and the group stay, whatever the umask', async (t) => {
  const { file, on } = setUp(t)
  chmodSync(file, 0o666)
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(file, 0, 1)
  await addEntry(on(), entry)
  t.equal(statSync(file).mode & 0o777, 0o666)
  if (isRoot) t.equal(statSync(file).gid, 1)
})

t.test('a temporary connection: the earlier entry comes back, and a later entry stays', async (t) => {
  const { read, on } = setUp(t)
  const forWhile = { url: 'http://127.0.0.1:5555/mcp' }
  const wrote = hashOfEntry(forWhile)
  await addEntry(on(), entry)
  const lasting = read()
  await addEntry(on(), forWhile)
  await undoOperation(on({ wrote }))
  t.equal(read(), lasting, 'the entry that was there')
  await addEntry(on(), forWhile)
  await addEntry(on(), { url: 'http://127.0.0.1:6666/mcp' })
  t.equal((await undoOperation(on({ wrote }))).outcome, 'none')
  t.match(read(), ':6666/')
})

t.test('dry runs show no value of the file, also when a removal or an undo restores one', async (t) => {
  const { file, on } = setUp(t)
  const shownBy = ({ text, changes }: OperationResult) =>
    maskedDiff(text, changes, file, { format: 'json', revealsInserted: false })
  await addEntry(on(), entry)
  await addEntry(on(), { url: 'http://127.0.0.1:9/mcp' })
  t.notMatch(shownBy(await removeEntry(on({ dryRun: true }))), 'canary')
  const theirs = on({ name: 'a', replace: true })
  await addEntry(theirs, entry)
  t.notMatch(shownBy(await undoOperation({ ...theirs, dryRun: true })), 'canary')
  t.notMatch(shownBy(await removeEntry({ ...theirs, dryRun: true })), 'canary')
})

t.test('dry runs: a line of a multi-line string is not treated as a name', (t) => {
  const text = 'key = """\nY2FuYXJ5==\nY2FuYXJ5=\n"""\nplain = 1\n'
  const shown = maskedDiff(text, [{ offset: text.length, removed: '', inserted: 'new = 1\n' }], 'f', {
    format: 'toml',
    revealsInserted: true,
  })
  t.notMatch(shown, 'Y2Fu')
  t.match(shown, /^ plain = …$/m)
  t.match(shown, /^\+new = 1$/m)
  t.end()
})

t.test('two simultaneous operations both write their entries', async (t) => {
  const { read, on } = setUp(t)
  await Promise.all([addEntry(on({ name: 'one' }), entry), addEntry(on({ name: 'two' }), entry)])
  t.match(read(), /"one"[\s\S]*"two"|"two"[\s\S]*"one"/)
})

t.test('a stale lock is ignored', async (t) => {
  const { folder, file, read, on } = setUp(t)
  await addEntry(on(), entry)
  const [id] = readdirSync(join(folder, 'state')).map((name) => name.split('.')[0] ?? '')
  const lock = join(folder, 'state', `${id}.lock`)
  const gone = spawn(process.execPath, ['-e', ''])
  await once(gone, 'exit')
  writeFileSync(lock, String(gone.pid))
  await removeEntry(on())
  t.equal(read(), original, 'the lock of a process that has ended')
  writeFileSync(lock, String(process.pid))
  const old = new Date(Date.now() - 120_000)
  utimesSync(lock, old, old)
  await addEntry(on(), entry)
  t.match(read(), '"gatehouse"', 'a lock older than any operation')
  t.equal(new Records(join(folder, 'state'), file).read().length, 3)
})

t.test('the last ten operations are recorded, with their backups', async (t) => {
  const { folder, read, on } = setUp(t)
  let time = 0
  const now = () => new Date(1_800_000_000_000 + ++time * 1000)
  for (let n = 0; n < 8; n++) {
    await addEntry(on({ now }), entry)
    await removeEntry(on({ now }))
  }
  const state = readdirSync(join(folder, 'state'))
  t.equal(state.filter((name) => name.endsWith('.bak')).length, 10)
  t.equal(read(), original)
})

t.test('a kill at any step leaves the old or the new file, and the next run continues', async (t) => {
  for (const step of ['read', 'recorded', 'written', 'replaced']) {
    await t.test(step, async (t) => {
      const { folder, file, read, on } = setUp(t)
      const { location, records } = on()
      const script = `
        import { addEntry } from '${join(import.meta.dirname, '../../../runtime/toolkit/client-files/operate.ts')}'
        await addEntry({ location: ${JSON.stringify(location)}, name: 'gatehouse', records: ${JSON.stringify(records)}, replace: false,
          dryRun: false, now: () => new Date(), onStep: (step) => { if (step === '${step}') process.kill(process.pid, 'SIGKILL') } }, ${JSON.stringify(entry)})`
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' })
      const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
      t.equal(signal, 'SIGKILL')
      const after = read()
      if (step === 'replaced') t.match(after, '"gatehouse"')
      else t.equal(after, original)
      await addEntry(on(), entry)
      t.match(read(), '"gatehouse"')
      await removeEntry(on())
      t.equal(read(), original)
      t.strictSame(readdirSync(folder).toSorted(), ['mcp.json', 'state'], 'no other file is left')
      t.ok(existsSync(file))
    })
  }
})

t.test(
  'a file of another user is left alone',
  { skip: process.getuid?.() !== 0 && 'needs root' },
  async (t) => {
    const { file, read, on } = setUp(t)
    const { chownSync } = await import('node:fs')
    chownSync(file, 65534, 65534)
    await t.rejects(addEntry(on(), entry), { message: /belongs to another user/ })
    t.equal(read(), original)
  },
)

t.test('dry runs: a file on one line shows which entries change, and no value', async (t) => {
  const servers = {
    a: { command: 'x', args: ['--key', 'canary-arg'], env: { TOKEN: 'canary', PATH: '/a' } },
    b: { url: 'https://canary.example' },
  }
  const text = JSON.stringify({ theme: 'canary', mcpServers: servers })
  const { file, on } = setUp(t, text)
  const added = await addEntry(on({ dryRun: true }), entry)
  const shown = (revealed: 'entry' | 'nothing') =>
    maskedDiff(text, added.changes, file, { format: 'json', revealsInserted: revealed === 'entry' })
  t.match(shown('entry'), /^\+ {4}"gatehouse":\{$\n^\+ {6}"url":"http:\/\/127\.0\.0\.1:4483\/mcp"/m)
  t.match(shown('nothing'), /^\+ {4}"gatehouse":\{$\n^\+ {6}"url":…$/m)

  // The gateway's entry of `gatehouse up`, which replaces the whole text.
  const without = JSON.stringify({ theme: 'canary', mcpServers: { b: servers.b, gatehouse: entry } })
  const whole = maskedDiff(text, [{ offset: 0, removed: text, inserted: without }], file, {
    format: 'json',
    revealsInserted: false,
  })
  t.match(whole, /^-.*"a":\{$/m)
  t.match(whole, /^\+.*"gatehouse":\{$/m)
  t.match(whole, /^-.*"args":\[…\],$/m, 'lists stay on one line')
  for (const diff of [shown('entry'), shown('nothing'), whole]) t.notMatch(diff, /canary|--key/)
})
