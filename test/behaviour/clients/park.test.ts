/** Parked entries: the gateway's entry replaces a client's servers, and the file is restored byte for byte. */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { type ClientId, clientRow, readEntries } from '../../../runtime/toolkit/clients/index.ts'
import { ParkJournal } from '../../../runtime/toolkit/client-files/park-journal.ts'
import {
  type ParkOptions,
  type ParkStep,
  parkServers,
  readOriginal,
  restoreServers,
} from '../../../runtime/toolkit/client-files/park.ts'

const entry = { command: '/bin/gatehouse', args: ['proxy', 'stdio', 'http://127.0.0.1:4483/mcp'] }
const contents = [
  '{ // mine',
  '  "mcpServers": {',
  '    "a": { "command": "x", "env": { "T": "canary" } }, // first',
  '    "b": { "command": "y" },',
  '    "off": { "command": "z", "disabled": true },',
  '  },',
  '}\r\n',
].join('\n')

function setUp(t: Pick<Test, 'testdir'>, text: string | undefined = contents) {
  const folder = realpathSync(t.testdir({}))
  const file = join(folder, 'mcp.json')
  if (text !== undefined) writeFileSync(file, text)
  const journal = new ParkJournal(join(folder, 'up'))
  const options: ParkOptions = { journal, records: join(folder, 'records'), name: 'gatehouse' }
  const target = { client: 'cursor' as const, file, key: ['mcpServers'] }
  return {
    folder,
    file,
    journal,
    read: () => readFileSync(file, 'utf8'),
    park: (servers: readonly string[] = ['a', 'b']) => parkServers(target, { entry, servers }, options),
    async restore() {
      const [parked] = journal.read()
      return parked ? restoreServers(parked, options) : undefined
    },
    names: () =>
      readEntries({ file, text: readFileSync(file, 'utf8'), client: 'cursor' }).entries.map(
        ({ name }) => name,
      ),
  }
}

t.test('park: every client’s file is restored byte for byte', async (t) => {
  const home = t.testdir({})
  cpSync('test/fixtures/clients/home', home, { recursive: true })
  const files: readonly (readonly [ClientId, string])[] = [
    ['claude-desktop', '.config/Claude/claude_desktop_config.json'],
    ['claude-code', '.claude.json'],
    ['cursor', '.cursor/mcp.json'],
    ['vscode', '.config/Code/User/mcp.json'],
    ['codex', '.codex/config.toml'],
    ['gemini', '.gemini/settings.json'],
    ['zed', '.config/zed/settings.json'],
    ['goose', '.config/goose/config.yaml'],
    ['opencode', '.config/opencode/opencode.json'],
  ]
  const journal = new ParkJournal(join(home, 'up'))
  const options = { journal, records: join(home, 'records'), name: 'gatehouse' }
  for (const [client, path] of files) {
    const file = join(home, path)
    const before = readFileSync(file)
    const { entries } = readEntries({ file, text: before.toString('utf8').replace(/^\ufeff/, ''), client })
    const servers = entries.filter(({ source }) => source.scope !== 'local').map(({ name }) => name)
    const own = clientRow(client).program?.('/bin/gatehouse', ['proxy']) ?? {}
    t.ok(
      await parkServers({ client, file, key: clientRow(client).key }, { entry: own, servers }, options),
      client,
    )
    const after = readEntries({
      file,
      text: readFileSync(file, 'utf8').replace(/^\ufeff/, ''),
      client,
    }).entries
    t.strictSame(
      after.filter(({ source }) => source.scope !== 'local').map(({ name }) => name),
      ['gatehouse'],
      `${client}: only the gateway is left`,
    )
    const parked = journal.find({ target: realpathSync(file), file })
    if (!parked) throw new Error('not in the journal')
    t.strictSame(await restoreServers(parked, options), { outcome: 'exact', notes: [] })
    t.ok(before.equals(readFileSync(file)), `${client}: the same bytes`)
  }
  t.strictSame(readdirSync(join(home, 'up/originals')), [])
})

t.test('park: secrets are in files that only the owner can read', async (t) => {
  const { park, folder } = setUp(t)
  await park()
  const [original = ''] = readdirSync(join(folder, 'up/originals'))
  for (const path of ['up/parked.json', `up/originals/${original}`]) {
    t.match(readFileSync(join(folder, path), 'utf8'), 'canary')
    t.equal(statSync(join(folder, path)).mode & 0o777, 0o600)
  }
  t.equal(statSync(join(folder, 'up')).mode & 0o777, 0o700)
})

t.test('park: a second time changes nothing', async (t) => {
  const { park, read, restore } = setUp(t)
  t.equal(await park(), true)
  const first = read()
  t.equal(await park(), false)
  t.equal(read(), first)
  await restore()
  t.equal(read(), contents)
})

t.test('park: adds a server that is new, and restores it', async (t) => {
  const { park, read, restore, file, names } = setUp(t)
  await park()
  const added = read().replace('"gatehouse":', '"new": { "command": "n" }, "gatehouse":')
  writeFileSync(file, added)
  await park(['a', 'b', 'new'])
  t.strictSame(names(), ['off', 'gatehouse'])
  await restore()
  t.strictSame(names().toSorted(), ['a', 'b', 'new', 'off'])
})

t.test('restore: a changed file loses only the gateway’s entry, and gets absent servers back', async (t) => {
  const { park, read, restore, file, names } = setUp(t)
  await park()
  writeFileSync(file, read().replace('"gatehouse":', '"b": { "command": "mine" }, "gatehouse":'))
  t.strictSame(await restore(), { outcome: 'merged', notes: ['kept the new "b"'] })
  t.strictSame(names().toSorted(), ['a', 'b', 'off'])
  t.match(read(), '"command": "mine"')
  t.match(read(), 'canary')
  t.match(read(), '{ // mine')
})

t.test('restore: keeps a gateway entry that the user changed', async (t) => {
  const { park, read, restore, file, names } = setUp(t)
  await park()
  writeFileSync(file, read().replace('/bin/gatehouse', '/bin/other'))
  t.strictSame(await restore(), { outcome: 'merged', notes: ['kept "gatehouse", which has changed'] })
  t.strictSame(names().toSorted(), ['a', 'b', 'gatehouse', 'off'])
})

t.test('restore: an unreadable file stays parked until it is repaired', async (t) => {
  const { park, read, restore, file, journal } = setUp(t)
  await park()
  const parked = read()
  writeFileSync(file, '{')
  await t.rejects(restore(), { code: 'INVALID_CONFIG' })
  t.equal(journal.read().length, 1)
  writeFileSync(file, parked)
  await restore()
  t.equal(read(), contents)
})

t.test('restore: brings a deleted file back, and removes a file that was created', async (t) => {
  const deleted = setUp(t)
  await deleted.park()
  rmSync(deleted.file)
  t.strictSame(await deleted.restore(), { outcome: 'exact', notes: ['the file was deleted'] })
  t.equal(deleted.read(), contents)

  const created = setUp(t)
  rmSync(created.file)
  await created.park([])
  t.strictSame(created.names(), ['gatehouse'])
  await created.restore()
  t.notOk(existsSync(created.file))
})

t.test('park and restore: a kill at any step is repaired', async (t) => {
  const modules = `
    import { ParkJournal } from '${resolve('runtime/toolkit/client-files/park-journal.ts')}'
    import { parkServers, restoreServers } from '${resolve('runtime/toolkit/client-files/park.ts')}'
  `
  const scripts = {
    park: `await parkServers({ client: 'cursor', file, key: ['mcpServers'] }, { entry: ${JSON.stringify(entry)}, servers: ['a', 'b'] }, options)`,
    restore: 'await restoreServers(options.journal.read()[0], options)',
  }
  const steps = {
    park: ['recorded', 'written', 'replaced'],
    restore: ['written', 'replaced', 'forgotten'],
  } as const
  for (const work of ['park', 'restore'] as const) {
    for (const step of steps[work]) {
      const { folder, file, read, restore, park, journal } = setUp(t)
      if (work === 'restore') await park()
      const script = `${modules}
        const file = ${JSON.stringify(file)}
        const options = {
          journal: new ParkJournal(${JSON.stringify(join(folder, 'up'))}), records: ${JSON.stringify(join(folder, 'records'))},
          name: 'gatehouse', onStep: (step) => { if (step === '${step}') process.kill(process.pid, 'SIGKILL') },
        }
        ${scripts[work]}`
      const { signal, stderr } = spawnSync(
        process.execPath,
        ['--input-type=module-typescript', '-e', script],
        {
          encoding: 'utf8',
        },
      )
      t.equal(signal, 'SIGKILL', `${work} ${step}: ${stderr}`)
      await restore()
      t.equal(read(), contents, `${work} killed at ${step}: restored`)
      t.strictSame(journal.read(), [])
      t.strictSame(
        readdirSync(folder).filter((name) => name.endsWith('.tmp')),
        [],
        'no temporary file is left',
      )
      t.equal(await park(), true, 'the next park works')
      await restore()
      t.equal(read(), contents)
    }
  }
})

t.test('restore: repeats a park that was killed while it replaced an earlier one', async (t) => {
  const { folder, file, read, restore, park } = setUp(t)
  await park(['a'])
  const journal = new ParkJournal(join(folder, 'up'))
  const stop = new Error('killed')
  const options = {
    journal,
    records: join(folder, 'records'),
    name: 'gatehouse',
    onStep: (step: string) => {
      if (step === 'recorded') throw stop
    },
  }
  const target = { client: 'cursor' as const, file, key: ['mcpServers'] }
  await t.rejects(parkServers(target, { entry, servers: ['a', 'b'] }, options), stop)
  await restore()
  t.equal(read(), contents)
})

t.test('read: returns the file as it is without the gateway', async (t) => {
  const { park, file, journal } = setUp(t)
  await park()
  t.equal(readOriginal({ client: 'cursor', file }, journal).text.text, contents)
})

t.test('restore: finds a file that has moved behind a symbolic link since', async (t) => {
  const { park, read, restore, file, folder, journal } = setUp(t)
  await park()
  const moved = join(folder, 'dotfiles.json')
  renameSync(file, moved)
  symlinkSync(moved, file)
  await park(['a', 'b', 'off'])
  t.equal(journal.read().length, 1, 'the file is parked once')
  t.strictSame(readdirSync(join(folder, 'up/originals')).length, 1)
  t.strictSame(await restore(), { outcome: 'exact', notes: [] })
  t.equal(read(), contents)

  const other = setUp(t)
  await other.park()
  renameSync(other.file, join(other.folder, 'dotfiles.json'))
  symlinkSync(join(other.folder, 'dotfiles.json'), other.file)
  t.strictSame(await other.restore(), { outcome: 'exact', notes: [] })
  t.equal(other.read(), contents)
})

for (const [parking, restoring] of [
  ['recorded', 'read'],
  ['written', 'written'],
] as const)
  t.test(`park and restore: keep what another program writes in between, at ${parking}`, async (t) => {
    const { file, read, restore, park, journal, folder, names } = setUp(t)
    const target = { client: 'cursor' as const, file, key: ['mcpServers'] }
    const optionsWith = (at: ParkStep, write: () => void): ParkOptions => {
      let isDone = false
      return {
        journal,
        records: join(folder, 'records'),
        name: 'gatehouse',
        onStep(step) {
          if (step === at && !isDone) write()
          isDone ||= step === at
        },
      }
    }
    const mine = contents.replace('{ // mine', '{ "mine": 1, // mine')
    const intoPark = optionsWith(parking, () => writeFileSync(file, mine))
    await parkServers(target, { entry, servers: ['a', 'b'] }, intoPark)
    t.match(read(), '"mine": 1')

    const parked = read()
    const changed = parked.replace('"mine": 1', '"mine": 2')
    const intoSecond = optionsWith(parking, () => writeFileSync(file, changed))
    await parkServers(target, { entry: { command: 'other' }, servers: ['a', 'b'] }, intoSecond)
    t.match(read(), '"mine": 2')
    t.match(read(), '"other"')
    await restore()
    t.match(read(), '"mine": 2')
    t.strictSame(names().toSorted(), ['a', 'b', 'off'], 'the earlier record is kept')

    await park()
    const third = read().replace('"mine": 2', '"mine": 3')
    const [record] = journal.read()
    if (!record) throw new Error('not in the journal')
    await restoreServers(
      record,
      optionsWith(restoring, () => writeFileSync(file, third)),
    )
    t.match(read(), '"mine": 3')
    t.match(read(), 'canary')
    t.strictSame(journal.read(), [])
  })
