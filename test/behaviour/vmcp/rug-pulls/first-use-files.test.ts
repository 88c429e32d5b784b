/** Misuse of trust on first use: hostile definitions, hostile names, shared folders, files that are in the way. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { create } from '../../../../runtime/toolkit/client-files/file.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'
import {
  approved,
  bothEras,
  called,
  listed,
  lockOf,
  other,
  startChanging,
  startPinned,
} from '../../../helpers/vmcp/pinning.ts'
import { lockFile, lockFolder } from '../../../../runtime/tools/lock/index.ts'

t.setTimeout(120_000)

const nowhere = 'http://127.0.0.1:9/mcp'

function folderOf(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-first-use-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The backend's items that a lock contains. */
function listingOf(tools: readonly string[], instructions?: string): never {
  const items = tools.map((json) => ({ key: JSON.parse(json).name as string, json: Buffer.from(json) }))
  return { tools: items, prompts: [], templates: [], server: { instructions } } as never
}

const toolOf = (name: string, more: object = {}): string =>
  JSON.stringify({ name, description: 'x', inputSchema: { type: 'object' }, ...more })

function nested(depth: number): string {
  return `{"name":"deep","inputSchema":{"type":"object"},"_meta":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`
}

async function start(t: Test, folder: string, backends: Readonly<Record<string, string>>) {
  const place = lockFolder(folder)
  const { pinning, toolLocks } = place.with(vmcpConfig(backends))
  const vmcp = await startPinned(t, backends, { pinning, toolLocks }, { lockKeeper: place })
  return { vmcp, clients: await bothEras(vmcp.url) }
}

async function names(clients: Awaited<ReturnType<typeof bothEras>>) {
  const lists = await Promise.all(clients.map(listed))
  return lists.map((tools) => tools.map(({ name }) => name).sort())
}

t.test('a lock of many tools is written without blocking the event loop', async (t) => {
  const path = join(folderOf(t), 'files.lock.yaml')
  const many = Array.from({ length: 300 }, (_, i) => toolOf(`tool_${i}`))
  let turns = 0
  const state = { done: false }
  const counting = (async () => {
    for (; !state.done; turns++) await turn()
  })()
  const { locks, written } = await lockFile(path, 'files').keep('files', listingOf(many))
  state.done = true
  await counting
  t.equal(written, true)
  t.equal(locks[0]?.tools?.length, 300)
  t.ok(turns > 100, `${turns} turns of the event loop meanwhile`)
})

t.test(
  'a definition that the reader would reject is not written, so the next start finds no broken file',
  async (t) => {
    const folder = folderOf(t)
    const rows: readonly (readonly [never, RegExp])[] = [
      [listingOf([nested(150)]), /nested more than 100 levels deep/],
      [
        listingOf(Array.from({ length: 10_000 }, (_, i) => toolOf(`t${i}`))),
        /do not fit in a lock: spec\.tools/,
      ],
      [
        listingOf([toolOf('big', { description: 'x'.repeat(9 << 20) })]),
        /larger than 8 MiB|do not fit in a lock/,
      ],
      [listingOf([approved], 'x'.repeat(300_000)), /do not fit in a lock: spec\.server\.instructions/],
    ]
    for (const [listing, message] of rows) {
      await t.rejects(lockFolder(folder).keep('files', listing), message)
      t.same(readdirSync(folder), [])
    }
  },
)

t.test('unusual names, texts and numbers survive writing and reading', async (t) => {
  const odd = [
    '{"name":"__proto__","inputSchema":{"type":"object"},"_meta":{"__proto__":{"a":1},"constructor":2}}',
    '{"name":"big","inputSchema":{"type":"object","properties":{"n":{"const":12345678901234567890}}}}',
    toolOf('---\n- a: &x *x', { description: '\u202e\u0000\u2028#: {}[]!!js/function \r\n \t' }),
    toolOf('lone', { description: '\ud800' }),
    toolOf('yes', { description: '0x1F', annotations: { title: '~' } }),
  ]
  const folder = folderOf(t)
  const place = lockFolder(folder)
  const { locks } = await place.keep('files', listingOf(odd, 'lone \ud800 surrogate'))
  t.same(
    new Map(locks[0]?.tools?.map(({ name, definition }) => [name, JSON.parse(definition)])),
    new Map(odd.map((json) => [JSON.parse(json).name, JSON.parse(json)])),
  )
  t.equal(locks[0]?.instructions, 'lone \ud800 surrogate')
  t.same(lockFolder(folder).with(vmcpConfig({ files: nowhere })).toolLocks, locks)
})

t.test('only the server that wrote the lock reports it', async (t) => {
  const folder = folderOf(t)
  const backend = await startChanging(t, [approved])
  const servers = [
    await start(t, folder, { files: backend.url }),
    await start(t, folder, { files: backend.url }),
  ]
  for (const { clients } of servers) t.same(await names(clients), [['read'], ['read']])
  const told = servers.flatMap(({ vmcp }) => vmcp.events.filter(({ type }) => type === 'tool_lock_written'))
  t.equal(told.length, 1)
})

t.test('files of backends of other servers are ignored', async (t) => {
  const folder = folderOf(t)
  const backend = await startChanging(t, [approved])
  await lockFolder(folder).keep('elsewhere', listingOf([other]))
  writeFileSync(join(folder, 'broken.lock.yaml'), '{')
  const { vmcp, clients } = await start(t, folder, { files: backend.url })
  t.same(await names(clients), [['read'], ['read']])
  t.same((await vmcp.status()).problems, [])
})

t.test('a lock that could not be written is tried again with the next lists', async (t) => {
  const folder = folderOf(t)
  const backend = await startChanging(t, [approved])
  const place = lockFolder(folder)
  const urls = { files: backend.url }
  const { pinning } = place.with(vmcpConfig(urls))
  const vmcp = await startPinned(t, urls, { pinning }, { lockKeeper: place })
  rmSync(folder, { recursive: true })
  writeFileSync(folder, '')
  // Opening a session reads the lists, because of the instructions.
  const clients = await bothEras(vmcp.url)
  t.same(await names(clients), [[], []])
  await vmcp.event('tool_lock', ({ failure }) => failure !== undefined)
  rmSync(folder)
  mkdirSync(folder)
  for (const client of clients) while ((await listed(client)).length === 0) await turn()
  t.equal(await called(clients[0] as never, 'read'), '{"path":"x"}')
  await vmcp.event('tool_lock', ({ failure }) => failure === undefined)
  t.same(readdirSync(folder), ['files.lock.yaml'])
})

t.test(
  'a backend whose lock is removed from the configuration is pinned at once as it is listed next',
  async (t) => {
    const folder = folderOf(t)
    const backend = await startChanging(t, [approved, other])
    const place = lockFolder(folder)
    const toolLocks = [lockOf('files', [approved], { scheme: 'gatehouse.pin.v1' })]
    const urls = { files: backend.url }
    const { pinning } = place.with(vmcpConfig(urls))
    const vmcp = await startPinned(t, urls, { pinning, toolLocks }, { lockKeeper: place })
    const clients = await bothEras(vmcp.url)
    t.same(await names(clients), [['read'], ['read']])
    vmcp.reload({ pinning, toolLocks: [] })
    for (const client of clients) while ((await listed(client)).length !== 2) await turn()
    t.same(await names(clients), [
      ['list', 'read'],
      ['list', 'read'],
    ])
    t.same(readdirSync(folder), ['files.lock.yaml'])
  },
)

t.test('an obstacle at the path of the file is a start-up error', async (t) => {
  const folder = folderOf(t)
  const path = (name: string) => join(folder, name)
  mkdirSync(path('folder'))
  symlinkSync('/nowhere/at/all', path('dangling'))
  execFileSync('mkfifo', [path('fifo')])
  const rows: readonly (readonly [string, RegExp])[] = [
    ['', /"" is not the path of a file/],
    ['-', /"-" is not the path of a file/],
    [`${path('new')}/`, /is not the path of a file/],
    [path('folder'), /is a folder, not a file/],
    [path('dangling'), /is a dangling symbolic link/],
    [path('fifo'), /is not a regular file/],
    ['/nowhere/at/all.yaml', /cannot write/],
  ]
  for (const [file, message] of rows) t.throws(() => lockFile(file, 'files'), message, file)
  t.throws(() => lockFolder(''), /"" is not the path of a folder/)
  mkdirSync(path('files.lock.yaml'))
  symlinkSync('/nowhere/at/all', path('notes.lock.yaml'))
  const config = vmcpConfig({ files: nowhere, notes: nowhere })
  t.throws(
    () => lockFolder(folder).with(config),
    /files\.lock\.yaml is a folder[^]*notes\.lock\.yaml is a dangling symb/,
  )
})

t.test('names that are not safe file names are rejected at the start', async (t) => {
  const folder = folderOf(t)
  for (const name of ['../up', 'a/b', '..', '.hidden', 'UPPER', 'with space', 'a'.repeat(250), 'nul\0']) {
    const config = vmcpConfig({ [name]: nowhere })
    t.throws(() => lockFolder(folder).with(config), /its name is not a safe file name/, name)
    const toolLocks = [{ backend: name, tools: [], scheme: 'gatehouse.pin.v1' as const }]
    t.doesNotThrow(() => lockFolder(folder).with({ ...config, toolLocks }), `${name} with its own lock`)
    await t.rejects(lockFolder(folder).keep(name, listingOf([approved])), /not a safe file name/, name)
  }
  t.same(readdirSync(folder), [])
  const longest = 'a'.repeat(245)
  await lockFolder(folder).keep(longest, listingOf([approved]))
  t.ok(existsSync(join(folder, `${longest}.lock.yaml`)))
})

t.test('no file is overwritten, even without hard links', async (t) => {
  const folder = folderOf(t)
  const [draft, target] = [join(folder, 'draft'), join(folder, 'target')]
  const noLinks = () => {
    throw Object.assign(new Error('operation not supported'), { code: 'EPERM' })
  }
  writeFileSync(draft, 'new')
  t.equal(create(draft, target, noLinks), true)
  t.same(readdirSync(folder), ['target'])
  writeFileSync(draft, 'newer')
  t.equal(create(draft, target, noLinks), false)
  t.equal(readFileSync(target, 'utf8'), 'new')
})
