/** The compiled code of an image: taken at every start, by any user, and never written to. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { freePort } from '../../../helpers/gatehouse.ts'

const root = resolve(import.meta.dirname, '../../../..')
const skip = !existsSync(join(root, 'dist/gatehouse.js')) && 'not built: run `make build`'

/** A folder that every user may enter, as an image is one. */
const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gatehouse-compiled-'))
/** The builder of an image is another user than the one who runs it; where that can be, they are here. */
const other = { uid: 65_532, gid: 65_532 }
const user =
  process.getuid?.() === 0 && spawnSync(process.execPath, ['-v'], { ...other, cwd: '/' }).status === 0
    ? other
    : {}
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
chmodSync(folder, 0o755)
const app = join(folder, 'app')
const temp = join(folder, 'temp')
mkdirSync(temp)
chmodSync(temp, 0o1777)

/** What the Dockerfiles do with the program. */
async function makeApp(): Promise<void> {
  cpSync(join(root, 'dist'), app, { recursive: true })
  const made = spawn(process.execPath, [join(root, 'manifests/bundle/compile.ts'), app], { stdio: 'pipe' })
  const [printed, [code]] = await Promise.all([text(made.stderr), once(made, 'exit')])
  if (code !== 0) throw new Error(printed)
}

interface Start {
  readonly code: unknown
  /** Scripts of the program that were loaded with compiled code, and the other ones. */
  readonly taken: number
  readonly others: readonly string[]
  readonly written: readonly string[]
}

/** Starts a server without a home and ends it as soon as it listens; Node says what it does about compiled code. */
async function start(
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Start> {
  const port = await freePort()
  const child = spawn(process.execPath, [join(app, script), ...args, '--port', String(port)], {
    ...user,
    cwd: folder,
    env: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE', TMPDIR: temp, ...env },
    stdio: 'pipe',
  })
  const ended = once(child, 'exit')
  const printed = Promise.all([text(child.stdout), text(child.stderr)])
  while (child.exitCode === null && !(await fetch(`http://127.0.0.1:${port}`).catch(() => undefined)))
    await new Promise((resolve) => setTimeout(resolve, 20))
  child.kill('SIGTERM')
  const [code] = await ended
  const lines = (await printed).join('\n').split('\n')
  const scripts = (end: RegExp) =>
    lines.flatMap((line) =>
      end.test(line) ? (/file:\S*\/((?:runtime|hooks)\/\S+)/.exec(line)?.[1] ?? []) : [],
    )
  return {
    code,
    taken: scripts(/was accepted/).length,
    others: scripts(/was not initialized|was rejected/),
    written: scripts(/writing cache .*success/),
  }
}

const servers = {
  'gatehouse proxy': ['gatehouse.js', ['proxy', '--target-uri', 'http://127.0.0.1:9', 'x']],
  'gatehouse-hooks': ['gatehouse-hooks.js', []],
} as const

t.test('compiled code: a server without a home takes it, whoever runs it', { skip }, async (t) => {
  await makeApp()
  const at = join(app, 'compiled')
  const made = readdirSync(at, { recursive: true, encoding: 'utf8' })
  t.strictSame(made.slice(0, 1), [`${process.version}-${process.arch}`])
  for (const [name, [script, args]] of Object.entries(servers)) {
    const { code, taken, others, written } = await start(script, args)
    t.equal(code, 0, name)
    t.ok(taken > 3, `${name}: ${taken} scripts`)
    t.strictSame([others, written], [[], []], `${name}: all that it loads at start`)
  }
  t.strictSame(readdirSync(at, { recursive: true, encoding: 'utf8' }), made, 'nothing was written to it')
  t.strictSame(readdirSync(temp), [], 'and nothing is left behind')
})

t.test(
  'compiled code: where the folder for temporary files is missing, shared memory serves',
  {
    skip: skip || (!existsSync('/dev/shm') && 'no /dev/shm'),
  },
  async (t) => {
    const { code, taken, others } = await start(...servers['gatehouse-hooks'], {
      TMPDIR: join(folder, 'absent'),
    })
    t.equal(code, 0)
    t.ok(taken > 3)
    t.strictSame(others, [])
  },
)

t.test('compiled code: that of another version of Node is left alone', { skip }, async (t) => {
  const own = join(app, 'compiled', `${process.version}-${process.arch}`)
  renameSync(own, join(app, 'compiled', 'v24.0.0-x64'))
  const { code, taken, written } = await start(...servers['gatehouse-hooks'])
  t.strictSame([code, taken, written], [0, 0, []])
  renameSync(join(app, 'compiled', 'v24.0.0-x64'), own)
})

t.test(
  'compiled code: when the user forbids caching in Node, or names a folder, that holds',
  { skip },
  async (t) => {
    const forbidden = await start(...servers['gatehouse-hooks'], { NODE_DISABLE_COMPILE_CACHE: '1' })
    t.strictSame([forbidden.code, forbidden.taken], [0, 0])
    const named = join(temp, 'named')
    const { code } = await start(...servers['gatehouse-hooks'], { NODE_COMPILE_CACHE: named })
    t.equal(code, 0)
    const written = readdirSync(named, { recursive: true, encoding: 'utf8' })
    t.ok(written.length > 3, `${written.length} files`)
  },
)
