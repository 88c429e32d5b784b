/** Runs the single executable without Node, with worker threads, the policy engine and its own child processes. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { freePort } from '../helpers/gatehouse.ts'

const root = resolve(import.meta.dirname, '../..')
const folder = t.testdir({ home: {}, manifests: {} })
const binary = join(folder, 'gatehouse')
const home = join(folder, 'home')
/** Ends a start that hangs. */
const timeout = 60_000
const env = { HOME: home, PATH: '/usr/bin:/bin' }

const made = spawnSync(process.execPath, [join(root, 'manifests/bundle/binary.ts'), '--out', binary], {
  cwd: root,
  encoding: 'utf8',
})
if (made.status !== 0) throw new Error(made.stderr)

function run(...args: string[]) {
  return spawnSync(binary, args, { cwd: folder, env, encoding: 'utf8', timeout })
}

/** Returns the name of the folder that contains the unpacked program. */
function programIn(cache: string): string {
  return readdirSync(cache).find((name) => name.startsWith('program-')) ?? ''
}

t.test('binary: starts without Node, and unpacks its files once', async (t) => {
  t.match(run('--version'), { status: 0, stdout: /^\d+\.\d+\.\d+\n$/ })
  const program = programIn(join(home, '.cache/gatehouse'))
  const at = join(home, '.cache/gatehouse', program)
  t.equal(statSync(at).mode & 0o777, 0o700, 'only the owner has access')
  const main = join(at, 'runtime/main.js')
  const before = statSync(main).mtimeMs
  t.equal(run('--version').status, 0)
  t.equal(statSync(main).mtimeMs, before, 'written once')
  rmSync(main)
  t.equal(run('--version').status, 0, 'a removed file is written again')
})

t.test('binary: runs with a home folder that cannot be written, and leaves no files behind', async (t) => {
  const temp = join(folder, 'temp')
  mkdirSync(temp)
  writeFileSync(join(folder, 'file'), '')
  const { status, stderr } = spawnSync(binary, ['--version'], {
    env: { HOME: join(folder, 'file'), TMPDIR: temp },
    encoding: 'utf8',
  })
  t.equal(status, 0, stderr)
  t.same(readdirSync(temp), [])
})

t.test('binary: does not use a cache folder that other users can write', async (t) => {
  const open = join(folder, 'open')
  mkdirSync(open)
  const first = spawnSync(binary, ['--version'], { env: { HOME: open }, encoding: 'utf8', timeout })
  t.equal(first.status, 0, first.stderr)
  const cache = join(open, '.cache/gatehouse')
  const program = programIn(cache)
  const main = join(cache, program, 'runtime/main.js')
  writeFileSync(main, 'process.stdout.write("not ours")'.padEnd(statSync(main).size))
  spawnSync('chmod', ['777', join(cache, program)])
  t.notMatch(
    spawnSync(binary, ['--version'], { env: { HOME: open }, encoding: 'utf8', timeout }).stdout,
    'not ours',
  )
})

t.test('binary: contains the policy engine and the hooks', async (t) => {
  const path = join(root, 'manifests/examples/authz')
  t.match(run('validate', '-f', path), { status: 0, stdout: /valid, 0 invalid/ })
  t.match(run('version', '-o', 'json'), { status: 0, stdout: /"node"/ })
  t.match(run('unpack', join(folder, 'unpacked')), { status: 2, stderr: /single executable/ })
  t.notOk(existsSync(join(folder, 'unpacked')))
})

t.test('binary: the processes of a proxy run the same executable', async (t) => {
  const port = await freePort()
  const child = spawn(
    binary,
    ['proxy', '--target-uri', 'http://127.0.0.1:9', '--port', String(port), '--workers', '2', 'two'],
    { env, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  t.teardown(() => void child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const [line] = (await Promise.race([
    once(child.stdout.setEncoding('utf8'), 'data'),
    once(child, 'exit').then(([code]) => [`ended with ${String(code)}: ${stderr}`]),
  ])) as [string]
  t.match(line, `on port ${port}`)
  const response = await fetch(`http://127.0.0.1:${port}/health`)
  t.equal(response.status, 200)
  t.match(await response.json(), { status: 'healthy', transport: 'streamable-http' })
  child.kill('SIGTERM')
  const [code] = (await once(child, 'exit')) as [number]
  t.equal(code, 0, stderr)
})
