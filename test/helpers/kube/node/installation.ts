/** The images in our own manifests, and the installation on a test cluster. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { imageReference } from '../../../../schemas/index.ts'
import { manifestsFolder } from '../../hooks/manifests.ts'
import { controllerManagerAbsent, type KubeApiserver } from '../apiserver.ts'
import { metacontrollerMissing, metacontrollerProgram } from '../metacontroller.ts'
import { type LocalNode, nodeMissing } from './index.ts'
import { type Image, imageOfDockerfile, imageOfPackage, imageOfProgram } from './images.ts'

export const systemNamespace = 'gatehouse-system'

/** Reason that no installation can run on this machine, for `{ skip }`; otherwise false. */
export function installationMissing(): string | false {
  const isBuilt = existsSync('dist/gatehouse.js') && existsSync('dist/gatehouse-hooks.js')
  const absent = controllerManagerAbsent() || metacontrollerMissing() || nodeMissing()
  return absent || (isBuilt ? false : 'run make build first')
}

/** Polls until `found` returns true, because the work of a cluster is visible only in its API. */
export async function until(
  what: string,
  found: () => boolean,
  { kube, node }: { readonly kube: KubeApiserver; readonly node: LocalNode },
): Promise<void> {
  for (let count = 0; count < 240; count += 1) {
    if (found()) return
    await pause(250)
  }
  const { stdout } = kube.kubectl(['get', 'jobs,pods,deploy,events', '-A'])
  throw new Error(`waited in vain: ${what}\n${await node.output()}\n${stdout}`)
}

/** Returns a folder with that name for the files of an image. */
export function imageFolder(folder: string, name: string): string {
  mkdirSync(join(folder, name), { recursive: true })
  return join(folder, name)
}

type NamedImage = readonly [name: string, image: Image]

export function installationImages(folder: string): readonly NamedImage[] {
  const at = (name: string) => imageFolder(folder, name)
  return [
    [imageReference('gatehouse-hooks', '0.1.0'), imageOfDockerfile('hooks/Dockerfile', at('hooks'))],
    [imageReference('gatehouse', '0.1.0'), imageOfDockerfile('runtime/Dockerfile', at('runtime'))],
    metacontrollerImage(folder),
  ]
}

export function metacontrollerImage(folder: string): NamedImage {
  const root = imageFolder(folder, 'metacontroller')
  const image = imageOfProgram(root, '/usr/bin/metacontroller', metacontrollerProgram())
  return ['ghcr.io/metacontroller/metacontroller:v4.17.2', image]
}

/** Images of the installation, and of the servers of the quickstart. */
export function quickstartImages(folder: string): ReadonlyMap<string, Image> {
  return new Map([...installationImages(folder), ...quickstartServerImages(folder)])
}

/**
 * Returns images with the entrypoints of their publishers' Dockerfiles. The first image has only a command, which
 * arguments replace.
 */
export function quickstartServerImages(folder: string): readonly NamedImage[] {
  const at = (name: string) => imageFolder(folder, name)
  const server = (name: string) => `@modelcontextprotocol/server-${name}`
  const runs = { entrypoint: ['node', 'dist/index.js'], cmd: [] }
  return [
    [
      'docker.io/mcp/everything:latest',
      imageOfPackage(at('everything'), server('everything'), { entrypoint: [], cmd: runs.entrypoint }),
    ],
    ['docker.io/mcp/memory:latest', imageOfPackage(at('memory'), server('memory'), runs)],
    ['docker.io/mcp/filesystem:latest', imageOfPackage(at('filesystem'), server('filesystem'), runs)],
  ]
}

/** Installs with a private Metacontroller, as docs/guides/install.md describes without Helm. */
export function applyInstallation(kube: KubeApiserver): void {
  kube.must(['create', '-f', join(manifestsFolder, 'chart/charts/metacontroller-definitions/crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  kube.must(['apply', '-k', join(manifestsFolder, 'overlays/everything')])
}

/** Returns true once all pods of a Deployment of the installation serve. */
export function isInstalled(kube: KubeApiserver, name: string): boolean {
  const { spec, status } = kube.get(['deployment', name, '-n', systemNamespace])
  return status.availableReplicas === spec.replicas
}
