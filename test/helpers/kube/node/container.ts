/**
 * Runs one container: its image over this machine's file system, its volumes, its user, its security limits, in the
 * pod's network namespace and in its own mount and process namespaces.
 *
 * Applies the pod's securityContext: user and group, no new privileges, no capabilities, a read-only root. Does not
 * apply memory and processor limits or seccomp.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ContainerStreams } from '../attach-server.ts'
import type { Image } from './images.ts'
import type { Container, Pod } from './pod-spec.ts'
import { expand } from '../../../../runtime/toolkit/local/pods.ts'

export interface ContainerPlan {
  readonly pod: Pod
  readonly container: Container
  readonly image: Image
  readonly env: Readonly<Record<string, string>>
  readonly network: string
  /** Folder with the volumes, one subfolder for each. */
  readonly volumes: string
  /** Private folder of the container. */
  readonly folder: string
  readonly resolvConf: string
}

export interface RunningContainer {
  /** Resolves with the exit code when the container has ended. */
  readonly exited: Promise<number>
  /** Streams of a container with an open standard input. */
  readonly streams: ContainerStreams | undefined
  /** Sends SIGTERM, then SIGKILL after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Starts a container. Throws when the pod forbids root and the image runs as root. */
export function startContainer(plan: ContainerPlan): RunningContainer {
  mkdirSync(plan.folder, { recursive: true })
  const script = join(plan.folder, 'start.sh')
  writeFileSync(script, scriptOf(plan), { mode: 0o700 })
  const log = join(plan.folder, 'log')
  const out = openSync(log, 'a')
  const inside = ['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-eu', script]
  const { stdin = false } = plan.container
  const child = spawn('nsenter', [`--net=${plan.network}`, ...inside], {
    stdio: stdin ? 'pipe' : ['ignore', out, out],
    env: { PATH: process.env['PATH'] ?? '' },
  })
  closeSync(out)
  // Both streams go to the log and to all attachers.
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => appendFileSync(log, chunk))
  const exited = ended(child)
  return {
    exited,
    streams: stdin ? new ContainerStreams(child) : undefined,
    async stop(graceMs) {
      const main = firstChild(child.pid ?? 0)
      if (main !== undefined) signal(main, 'SIGTERM')
      // The container ends with process 1. Its parent-death signal was reset by the change of its user, so it is killed
      // here.
      const timer = setTimeout(() => signal(main ?? child.pid ?? 0, 'SIGKILL'), graceMs)
      await exited
      clearTimeout(timer)
    },
  }
}

async function ended(child: ChildProcess): Promise<number> {
  const end: unknown[] = await once(child, 'exit')
  return typeof end[0] === 'number' ? end[0] : 137
}

/** Returns process 1 of the container, which `unshare` has started. */
function firstChild(pid: number): number | undefined {
  try {
    const [first = ''] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
    return first === '' ? undefined : Number(first)
  } catch {
    return undefined
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has already ended.
  }
}

const packageFolder = resolve(import.meta.dirname, '../../../../node_modules')

function scriptOf(plan: ContainerPlan): string {
  const { pod, container, image, folder } = plan
  const { security, uid } = userOf(plan)
  const scratch = join(folder, 'root')
  const root = join(scratch, 'merged')
  const at = (path: string) => quote(root + path)
  const lines = [
    `mkdir -p ${quote(scratch)}`,
    `mount -t tmpfs -o mode=755 tmpfs ${quote(scratch)}`,
    `mkdir ${quote(join(scratch, 'upper'))} ${quote(join(scratch, 'work'))} ${quote(root)}`,
    `mount -t overlay overlay -o lowerdir=${image.root}:/,upperdir=${scratch}/upper,workdir=${scratch}/work ${quote(root)}`,
    `mount -t proc proc ${at('/proc')}`,
    `mount --rbind /dev ${at('/dev')}`,
    // An image has an empty /tmp and /run. The files of this machine must not appear there.
    `mount -t tmpfs -o mode=1777 tmpfs ${at('/tmp')}`,
    `mount -t tmpfs tmpfs ${at('/run')}`,
    // Images of npm servers link to the packages of this repository, which may itself be in one of these folders.
    `[ -e ${at(packageFolder)} ] || { mkdir -p ${at(packageFolder)} && mount --bind ${quote(packageFolder)} ${at(packageFolder)}; }`,
    `rm -f ${at('/etc/resolv.conf')}`,
    `cp ${quote(plan.resolvConf)} ${at('/etc/resolv.conf')}`,
    // Links such as /var/run must resolve inside the image, not on this machine.
    `inside() { printf '%s%s' ${quote(root)} "$(chroot ${quote(root)} realpath -m "$1")"; }`,
    ...(container.volumeMounts ?? []).map(({ mountPath }) => `mkdir -p "$(inside ${quote(mountPath)})"`),
    ...(security.readOnlyRootFilesystem
      ? ['', '/tmp', '/run'].map((path) => `mount -o remount,bind,ro ${at(path)}`)
      : []),
    ...mountsOf(plan),
  ]
  const env = { ...image.env, ...plan.env }
  const words = [
    ...(container.command ?? image.entrypoint),
    ...(container.args ?? (container.command ? [] : image.cmd)),
  ]
  const gid = security.runAsGroup ?? uid
  const groups = pod.spec.securityContext?.fsGroup
  const ids = [`--reuid=${uid}`, `--regid=${gid}`, groups ? `--groups=${groups}` : '--clear-groups']
  const argv = [
    ...['chroot', root, 'setpriv', ...ids, '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'],
    ...['env', '-i', `--chdir=${container.workingDir ?? image.workdir}`],
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...words.map((word) => expand(word, plan.env)),
  ]
  return `${lines.join('\n')}\nexec ${argv.map(quote).join(' ')}\n`
}

function userOf({ pod, container, image }: ContainerPlan) {
  const security = { ...pod.spec.securityContext, ...container.securityContext }
  const uid = security.runAsUser ?? image.user ?? 0
  if (security.runAsNonRoot && uid === 0) throw new Error(`${container.name}: its image runs as root`)
  return { security, uid }
}

function mountsOf({ pod, container, volumes }: ContainerPlan): string[] {
  return (container.volumeMounts ?? []).flatMap(({ name, mountPath, readOnly, subPath = '' }) => {
    const volume = pod.spec.volumes?.find((one) => one.name === name)
    const source = quote(join(volume?.hostPath?.path ?? join(volumes, name), subPath))
    const target = `"$(inside ${quote(mountPath)})"`
    return [
      `mount --bind ${source} ${target}`,
      ...(readOnly || volume?.configMap || volume?.secret || volume?.projected
        ? [`mount -o remount,bind,ro ${target}`]
        : []),
    ]
  })
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}
