/**
 * Assembles the root file systems of both images without an image builder: the packages of their base from this
 * machine's Debian, and the files that the last stage of their Dockerfiles copies. They contain no shell and no other
 * program.
 *
 * Source: distroless, base/config.bzl and cc/config.bzl (the packages), base/README.md (the rest).
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Image, imageOfDockerfile } from '../kube/node/images.ts'

/** Names of Debian 12 and 13. */
const packages = [
  ['libc6'],
  ['libssl3', 'libssl3t64'],
  ['libgcc-s1'],
  ['libstdc++6'],
  ['libgomp1'],
  ['zlib1g'],
  ['libzstd1'],
]

function filesOf(names: readonly string[]): readonly string[] {
  for (const name of names) {
    const { status, stdout } = spawnSync('dpkg', ['-L', name], { encoding: 'utf8' })
    if (status === 0) return stdout.split('\n').filter((path) => path.startsWith('/') && path !== '/.')
  }
  return []
}

/** Reason that no root file system can be assembled on this machine, for `{ skip }`; otherwise false. */
export function rootfsMissing(): string | false {
  if (process.getuid?.() !== 0) return 'chroot needs root'
  if (!existsSync('dist/gatehouse.js')) return 'not built: run `make build`'
  const without = packages.find((names) => filesOf(names).length === 0)
  return without ? `Debian's package ${without[0]} is not on this machine` : false
}

/** Creates the base: merged /usr, libraries, a user, writable folders. */
function makeBase(root: string): void {
  for (const folder of ['usr/lib', 'usr/lib64', 'usr/bin', 'etc/ssl/certs', 'proc', 'dev', 'tmp'])
    mkdirSync(join(root, folder), { recursive: true })
  for (const name of ['lib', 'lib64', 'bin']) symlinkSync(`usr/${name}`, join(root, name))
  chmodSync(join(root, 'tmp'), 0o1777)
  for (const path of packages.flatMap(filesOf)) {
    if (statSync(path).isDirectory() || path.startsWith('/usr/share/')) continue
    mkdirSync(join(root, dirname(path)), { recursive: true })
    copyFileSync(path, join(root, path))
  }
  writeFileSync(join(root, 'etc/passwd'), 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n')
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n')
}

/** Assembles the image of a Dockerfile in `root`, which must not exist. */
export function assembleRootfs(dockerfile: string, root: string): Image {
  makeBase(root)
  return imageOfDockerfile(dockerfile, root)
}
