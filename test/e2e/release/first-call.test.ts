/**
 * Installs each artifact and calls a tool, as a new user does: the packed npm package, and the executable that install.sh
 * installs from a release. Each test prints the time that this takes. `registry.test.ts` covers the chart.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { gzipSync } from 'node:zlib'

const root = resolve(import.meta.dirname, '../../..')
const node = process.execPath
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const systemPath = ['/usr/local/bin', '/usr/bin', '/bin'].join(delimiter)

/** Calls a tool of a stdio server with an installed `gatehouse`, in an environment without any other settings. */
function callTool(t: Test, program: string, folder: string, path = systemPath): void {
  const args = ['tools', 'call', 'echo', 'message=hello', '--', node, everything]
  const env = { HOME: join(folder, 'home'), PATH: path }
  const { status, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8', timeout: 60_000 })
  t.equal(status, 0, stderr)
  t.equal(stdout, 'Echo: hello\n')
}

function secondsSince(start: number): string {
  return ((performance.now() - start) / 1000).toFixed(1)
}

t.test('npm package: a global installation of the tarball calls a tool', { timeout: 120_000 }, async (t) => {
  const folder = t.testdir({ home: {}, prefix: {} })
  execFileSync(node, [join(root, 'manifests/bundle/package.ts'), folder])
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
  const start = performance.now()
  const env = { ...process.env, npm_config_cache: join(folder, 'cache'), npm_config_offline: 'true' }
  const args = ['install', '--global', '--prefix', join(folder, 'prefix'), `./${tarball}`]
  execFileSync('npm', args, { cwd: folder, env, stdio: 'ignore' })
  callTool(t, join(folder, 'prefix/bin/gatehouse'), folder, [join(node, '..'), systemPath].join(delimiter))
  t.comment(`npm package: first tool call ${secondsSince(start)} s after npm install`)
})

const platform = `${process.platform}-${process.arch}`
const skip = ['linux', 'darwin'].includes(process.platform) ? false : 'install.sh is for Linux and macOS'

t.test(
  'executable: install.sh installs it from a release, and it calls a tool',
  { skip, timeout: 240_000 },
  async (t) => {
    const folder = t.testdir({ home: {}, prefix: {} })
    const built = join(folder, 'built')
    execFileSync(node, [join(root, 'manifests/bundle/binary.ts'), '--out', built], { cwd: root })
    const name = `gatehouse-0.1.0-${platform}.gz`
    const bytes = gzipSync(readFileSync(built), { level: 1 })
    const sums = `${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`
    const files = new Map<string, Buffer | string>([
      ['/latest/download/SHA256SUMS', sums],
      [`/latest/download/${name}`, bytes],
    ])
    const server = createServer(({ url = '' }, response) => {
      const file = files.get(url)
      response.writeHead(file === undefined ? 404 : 200).end(file)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const start = performance.now()
    const env = {
      HOME: join(folder, 'home'),
      PATH: '/usr/bin:/bin',
      PREFIX: join(folder, 'prefix'),
      RELEASES: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    }
    const script = spawn('sh', [join(root, 'manifests/release/install.sh')], { env, stdio: 'ignore' })
    const [code]: number[] = await once(script, 'exit')
    t.equal(code, 0)
    callTool(t, join(folder, 'prefix/bin/gatehouse'), folder)
    t.comment(
      `${platform} executable: first tool call ${secondsSince(start)} s after the start of install.sh`,
    )
  },
)
