/** Runs both images from root file systems that are assembled without an image builder. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, globSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { manifestsFolder } from '../helpers/hooks/manifests.ts'
import type { Image } from '../helpers/kube/node/images.ts'
import { assembleRootfs, rootfsMissing } from '../helpers/release/rootfs.ts'

function rootOf(t: Test, file: string): { readonly root: string; readonly image: Image } {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-rootfs-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const root = join(folder, 'root')
  return { root, image: assembleRootfs(file, root) }
}

/**
 * Runs entrypoint and arguments like a container runtime: as the image's user, with /proc and only its own environment.
 */
function command(root: string, { entrypoint, user, env }: Image, args: readonly string[]) {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const inside = ['chroot', `--userspec=${user}:${user}`, '--groups=', root, ...entrypoint, ...args]
  const start = 'mount --rbind /proc "$0/proc"; exec env -i "$@"'
  return ['unshare', ['--mount', 'sh', '-euc', start, root, ...variables, ...inside]] as const
}

function run(root: string, image: Image, ...args: string[]) {
  const [program, words] = command(root, image, args)
  return spawnSync(program, words, { encoding: 'utf8', timeout: 60_000 })
}

const skip = rootfsMissing()

t.test(
  'runtime image: contains Node, its libraries and the program, and no other program',
  { skip },
  async (t) => {
    const { root, image } = rootOf(t, 'runtime/Dockerfile')
    t.equal(image.user, 65_532)
    const programs = globSync('**/{bin,sbin}/*', { cwd: root }).filter((path) =>
      statSync(join(root, path)).isFile(),
    )
    t.strictSame(programs, ['usr/local/bin/node'])
    const help = run(root, image, '--help')
    t.equal(help.status, 0, help.stderr)
    cpSync(join(manifestsFolder, 'examples/authz'), join(root, 'tmp/authz'), { recursive: true })
    const validated = run(root, image, 'validate', '-f', '/tmp/authz')
    t.equal(validated.status, 0, `the policy engine is there: ${validated.stderr}`)
  },
)

t.test(
  'runtime image: unpacks itself into a volume, and runs from there in an empty image',
  { skip },
  async (t) => {
    const { root, image } = rootOf(t, 'runtime/Dockerfile')
    const unpacked = run(root, image, 'unpack', '/tmp/gatehouse')
    t.equal(unpacked.status, 0, unpacked.stderr)
    const empty = mkdtempSync(join(tmpdir(), 'gatehouse-rootfs-'))
    t.teardown(() => rmSync(empty, { recursive: true, force: true }))
    cpSync(join(root, 'tmp/gatehouse'), join(empty, 'gatehouse'), { recursive: true })
    for (const name of ['tmp', 'proc']) mkdirSync(join(empty, name))
    chmodSync(empty, 0o755)
    // Starts a stdio server as its container would.
    const at = (name: string) => `/gatehouse/${name}`
    const entrypoint = [at('ld.so'), '--library-path', at('lib'), at('node'), at('gatehouse.js')]
    const help = run(empty, { ...image, entrypoint }, 'proxy', '--help')
    t.equal(help.status, 0, help.stderr)
    t.match(help.stdout, 'gatehouse proxy')
  },
)

t.test('hooks image: the server starts and responds', { skip }, async (t) => {
  const { root, image } = rootOf(t, 'hooks/Dockerfile')
  const [program, words] = command(root, image, ['--host', '127.0.0.1', '--port', '0'])
  const server = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => server.kill('SIGKILL'))
  const printed: string[] = []
  for await (const line of createInterface(server.stderr)) {
    printed.push(line)
    if (line.includes('"listening"')) break
  }
  const port = /"port":(\d+)/.exec(printed.join('\n'))?.[1]
  t.ok(port, printed.join('\n'))
  const response = await fetch(`http://127.0.0.1:${port}/readyz`)
  t.equal(response.status, 200)
})
