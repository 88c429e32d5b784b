/**
 * The one node of a test cluster: runs the pods that the API server has, as local processes that see what they would see on
 * a real node, and leads Services to them.
 *
 * A test that uses it runs itself again in namespaces of its own (`insideNamespaces`), so that addresses, names and mounts
 * are the cluster's, nothing on this machine is touched, and at its end nothing is left running. Needs Linux, root, `ip`.
 *
 * Source: the Kubernetes documentation of pods, probes, volumes and Services. What is missing is reported as an error.
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
  /** What the containers printed, for a failure. */
  output(): Promise<string>
}

/** Why no node can be had here, for `{ skip }`; false when one can. */
export function nodeMissing(): string | false {
  if (process.getuid?.() !== 0) return 'no namespaces for pods: this needs root'
  if (spawnSync('ip', ['-V']).status !== 0) return 'no `ip` in PATH to make the network of pods'
  const link = ['ip', 'link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'veth1']
  const tried = spawnSync('unshare', [...namespaces, ...link])
  return tried.status === 0 ? false : 'namespaces for pods cannot be made here'
}

/** True in the run of the test file that has the namespaces. */
export function isInsideNamespaces(): boolean {
  return process.env[marker] !== undefined
}

/** The command that runs a program with namespaces of its own. */
export function inNamespaces(args: readonly string[]): {
  readonly command: string
  readonly args: string[]
  readonly env: NodeJS.ProcessEnv
} {
  const env = { ...process.env, [marker]: '1' }
  return { command: 'unshare', args: [...namespaces, process.execPath, ...args], env }
}

/** Runs a test file once more, with namespaces of its own; its results are results of `t`. */
export async function insideNamespaces(t: Test, file: string): Promise<void> {
  const { command, args, env } = inNamespaces([file])
  await t.spawn(command, args, { env, timeout: 600_000 }, 'on a node of its own')
}

/** Starts API server, controller manager and node, and ends them with the test. */
export async function startCluster(
  t: Pick<Test, 'teardown'>,
  images: (folder: string) => ReadonlyMap<string, Image>,
): Promise<{ readonly kube: KubeApiserver; readonly node: LocalNode }> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-node-'))
  t.teardown(() => {
    // Layers of images lie in memory, mounted there.
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
  await ask({ kube: { url, token, authority }, folder, images: [...images(join(folder, 'images'))] })
  return {
    kube,
    node: {
      pods: async () => (await ask('pods')) as string[],
      output: async () => String(await ask('output')),
    },
  }
}
