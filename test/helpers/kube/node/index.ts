/**
 * The one node of a test cluster. It runs the pods of the API server as local processes with the environment of a real
 * node, and routes Services to them.
 *
 * A test that uses it runs itself again in its own namespaces (`insideNamespaces`). Addresses, names and mounts then
 * belong to the cluster, this machine is not changed, and no process survives the test. Needs Linux, root, `ip`.
 *
 * Source: the Kubernetes documentation of pods, probes, volumes and Services. Unsupported features are reported as
 * errors.
 */
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type KubeApiserver, startKubeApiserver } from '../apiserver.ts'
import { type Image, prepareImages } from './images.ts'
import { prepareNode } from './network.ts'
import type { NodeOptions } from './node.ts'

export { type Image, imageOfDockerfile, imageOfPackage } from './images.ts'

const marker = 'GATEHOUSE_TEST_NODE'
const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']

export interface LocalNode {
  /** `namespace/name` of every pod that has processes. */
  pods(): Promise<readonly string[]>
  /** Output of the containers, for failures. */
  output(): Promise<string>
}

/** Reason that no node can run on this machine, for `{ skip }`; otherwise false. */
export function nodeMissing(): string | false {
  if (process.getuid?.() !== 0) return 'no namespaces for pods: this needs root'
  if (spawnSync('ip', ['-V']).status !== 0) return 'no `ip` in PATH to make the network of pods'
  const link = ['ip', 'link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'veth1']
  const tried = spawnSync('unshare', [...namespaces, ...link])
  return tried.status === 0 ? false : 'namespaces for pods cannot be made here'
}

/** True in the run of the test file that is inside the namespaces. */
export function isInsideNamespaces(): boolean {
  return process.env[marker] !== undefined
}

/** Command that runs a program in its own namespaces. */
export function inNamespaces(args: readonly string[]): {
  readonly command: string
  readonly args: string[]
  readonly env: NodeJS.ProcessEnv
} {
  const env = { ...process.env, [marker]: '1' }
  return { command: 'unshare', args: [...namespaces, process.execPath, ...args], env }
}

/** Runs a test file again in its own namespaces. Its results become results of `t`. */
export async function insideNamespaces(t: Test, file: string): Promise<void> {
  const { command, args, env } = inNamespaces([file])
  await t.spawn(command, args, { env, timeout: 600_000 }, 'on a node of its own')
}

/** Starts API server, controller manager and node, and ends them with the test. */
export async function startCluster(
  t: Pick<Test, 'teardown'>,
  images: (folder: string) => ReadonlyMap<string, Image> | Promise<ReadonlyMap<string, Image>>,
): Promise<{ readonly kube: KubeApiserver; readonly node: LocalNode }> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-node-'))
  t.teardown(() => {
    // The layers of images are on a memory file system that is mounted there.
    spawnSync('umount', [join(folder, 'images')])
    rmSync(folder, { recursive: true, force: true })
  })
  prepareNode(folder)
  prepareImages(join(folder, 'images'))
  const kube = await startKubeApiserver(t, { serviceAccounts: true })
  kube.startControllerManager()
  const node = fork(join(import.meta.dirname, 'node.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.teardown(async () => {
    if (!node.connected) return
    const gone = once(node, 'exit')
    node.disconnect()
    await gone
  })
  const ended = once(node, 'exit').then(() => ['the node has ended: its error is printed above'])
  const ask = async (what: NodeOptions | string): Promise<unknown> => {
    const response = Promise.race([once(node, 'message'), ended])
    if (node.connected) node.send(what)
    const [value]: unknown[] = await response
    return value
  }
  const { url, token, authority } = kube
  const named = await images(join(folder, 'images'))
  await ask({ kube: { url, token, authority }, folder, images: [...named] })
  return {
    kube,
    node: {
      pods: async () => (await ask('pods')) as string[],
      output: async () => String(await ask('output')),
    },
  }
}
