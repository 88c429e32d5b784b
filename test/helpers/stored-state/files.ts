/** Files of the CLI: persisted logins, lock files, tool locks, and records of edited client files. */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { silentLog } from '../../../runtime/net/index.ts'
import { Secret } from '../../../runtime/observe/index.ts'
import { withFileLock } from '../../../runtime/outgoing/login/file-lock.ts'
import { persistInDirectory } from '../../../runtime/outgoing/login/persisted.ts'
import { addEntry, undoOperation } from '../../../runtime/toolkit/client-files/operate.ts'
import { readLock, writeLock } from '../../../runtime/tools/lock/lock-file.ts'
import { entry, original, setUp } from '../../behaviour/clients/rig.ts'
import { openSession } from '../mcp/wire.ts'
import { startRawBackend } from '../mcp/raw-backend.ts'
import { startKeptLogins } from '../proxy/kept-login.ts'
import { bareNames, startTestVmcp } from '../vmcp/vmcp.ts'
import type { Recorded, StoredPart } from './part.ts'

/** Base64 contents by file name. */
type Files = Readonly<Record<string, string>>

function readFolder(folder: string): Files {
  const names = readdirSync(folder).toSorted()
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name)).toString('base64')]))
}

function writeFolder(folder: string, files: Files): string {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(folder, name), Buffer.from(text, 'base64'))
  return folder
}

const password = new Secret('the recorded password')
const secretValue = { token: 'a recorded token', at: 1_893_456_000_000 }

export const loginsPart: StoredPart = {
  name: 'logins',
  async record(t) {
    const kept = await startKeptLogins(() => 'cut', { tokens: { accessToken: 'recorded-access' } })
    t.teardown(() => kept.close())
    const folder = t.testdir({})
    persistInDirectory(folder, password, silentLog).write('recorded', secretValue)
    let lock = ''
    const path = join(folder, 'a.lock')
    await withFileLock(path, new AbortController().signal, async () => {
      lock = readFileSync(path, 'utf8').replace(String(process.pid), '<pid>').replace(hostname(), '<host>')
    })
    return { kept: readFolder(kept.dir), withPassword: readFolder(folder), lock }
  },
  async check(t, recorded) {
    await t.test('a persisted login provides its token', async (t) => {
      const dir = writeFolder(t.testdir({}), recorded['kept'])
      const kept = await startKeptLogins(() => 'cut', { dir })
      t.teardown(() => kept.close())
      const login = kept.open()
      await login.start()
      t.match(await login.token(), { value: 'recorded-access' })
      t.equal(kept.asked(), 0)
    })
    await t.test('a password decrypts its file', async (t) => {
      const dir = writeFolder(t.testdir({}), recorded['withPassword'])
      t.strictSame(persistInDirectory(dir, password, silentLog).read('recorded'), secretValue)
      t.equal(persistInDirectory(dir, password, silentLog).read('another'), undefined)
      t.equal(persistInDirectory(dir, new Secret('wrong'), silentLog).read('recorded'), undefined)
    })
    await t.test('a lock keeps other processes out while its process runs', async (t) => {
      const path = join(t.testdir({}), 'a.lock')
      const leave = (pid: number): void =>
        writeFileSync(path, recorded['lock'].replace('<pid>', String(pid)).replace('<host>', hostname()))
      const take = () => {
        const stop = new AbortController()
        const onWait = () => stop.abort(new Error('another process holds the lock'))
        return withFileLock(path, stop.signal, async () => 'run', { onWait })
      }
      leave(process.pid)
      await t.rejects(take(), { message: 'another process holds the lock' })
      // Larger than the largest process id.
      leave(2 ** 30)
      t.equal(await take(), 'run')
    })
  },
}

/** Beginning of the names of the records and backups of one client file. */
const idOf = (file: string): string => createHash('sha256').update(file).digest('hex').slice(0, 24)

export const clientEditsPart: StoredPart = {
  name: 'client-edits',
  async record(t) {
    const { folder, file, read, on } = setUp(t)
    await addEntry(on(), entry)
    const state = join(folder, 'state')
    const neutral = (text: string) => text.replaceAll(idOf(file), '<id>').replaceAll(folder, '<folder>')
    const files = readdirSync(state).map((name) => [
      neutral(name),
      neutral(readFileSync(join(state, name), 'utf8')),
    ])
    return { edited: read(), files: Object.fromEntries(files) }
  },
  async check(t, recorded) {
    const { folder, file, read, on } = setUp(t, recorded['edited'])
    mkdirSync(join(folder, 'state'))
    const local = (text: string) => text.replaceAll('<id>', idOf(file)).replaceAll('<folder>', folder)
    for (const [name, text] of Object.entries<string>(recorded['files']))
      writeFileSync(join(folder, 'state', local(name)), local(text))
    t.equal((await addEntry(on(), entry)).outcome, 'none', 'the recorded entry exists')
    t.equal((await undoOperation(on())).outcome, 'changed')
    t.equal(read(), original)
  },
}

const tool = (description: string) =>
  JSON.stringify({ name: 'say', description, inputSchema: { type: 'object' } })

async function callPinned(t: Test, file: string, description: string): Promise<string> {
  const backend = await startRawBackend({ tools: () => [tool(description)] })
  t.teardown(() => backend.close())
  const vmcp = await startTestVmcp(
    { notes: backend.url },
    {
      aggregation: bareNames('notes'),
      pinning: { onChanged: 'block', onNew: 'block' },
      toolLocks: readLock(file, 'notes')?.locks,
    },
  )
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url)
  const { response } = await session.request('tools/call', { name: 'say', arguments: {} })
  return response?.result ? 'called' : String(response?.error?.message)
}

export const toolLocksPart: StoredPart = {
  name: 'tool-locks',
  async record(t) {
    const path = join(t.testdir({}), 'notes.yaml')
    const tools = [{ key: 'say', text: tool('approved') }]
    const offered = { tools, prompts: [], templates: [], instructions: undefined }
    writeLock({ path, kind: 'MCPServer', backend: 'notes', offered })
    return { text: readFileSync(path, 'utf8') }
  },
  async check(t, recorded: Recorded) {
    const file = join(t.testdir({ 'notes.yaml': recorded['text'] }), 'notes.yaml')
    t.equal(await callPinned(t, file, 'approved'), 'called')
    t.not(await callPinned(t, file, 'changed'), 'called')
  },
}
