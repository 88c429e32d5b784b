/**
 * A pod's volumes and environment, from the API.
 *
 * Writes files like a kubelet: behind the symbolic link `..data`, which is replaced in one step when the ConfigMap or
 * Secret changes, with the modes and group of the pod.
 */
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { KubeObject } from './api.ts'
import type { Container, EnvVar, KeyRef, Pod, Source, Volume } from './pod-spec.ts'
import { expand } from '../../../../runtime/toolkit/local/pods.ts'

export interface Data extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}

/** Sources of volumes and variables. */
export interface Sources {
  readonly configMap: (namespace: string, name: string) => Data | undefined
  readonly secret: (namespace: string, name: string) => Data | undefined
  /** Requests a new token of the pod's service account. */
  readonly token: (audience: string | undefined, expirationSeconds: number | undefined) => Promise<string>
  readonly podAddress: string
}

/** An object that a container waits for, described like an Event of a kubelet. */
export class NotThereYet extends Error {}

type Files = ReadonlyMap<string, Buffer>

/** Writes all volumes below `folder`, each into a subfolder with its name. Throws NotThereYet. */
export async function writeVolumes(pod: Pod, folder: string, sources: Sources): Promise<void> {
  for (const volume of pod.spec.volumes ?? []) {
    const at = join(folder, volume.name)
    if (volume.hostPath) continue
    const isNew = mkdirSync(at, { recursive: true }) !== undefined
    const { fsGroup } = pod.spec.securityContext ?? {}
    const isEmpty = volume.emptyDir !== undefined || volume.persistentVolumeClaim !== undefined
    if (isNew) own(at, isEmpty ? 0o2777 : 0o755, fsGroup)
    if (!isEmpty) publish(at, await filesOf(pod, volume, sources), modeOf(volume), fsGroup)
  }
}

function modeOf({ configMap, secret, projected }: Volume): number {
  return (configMap ?? secret ?? projected)?.defaultMode ?? 0o644
}

async function filesOf(pod: Pod, volume: Volume, sources: Sources): Promise<Files> {
  const { configMap, secret, projected } = volume
  if (configMap) return dataFiles(pod, configMap, 'ConfigMap', sources)
  if (secret) return dataFiles(pod, secret, 'Secret', sources)
  if (!projected) throw new Error(`the node has no volumes such as ${JSON.stringify(volume)}`)
  const files = new Map<string, Buffer>()
  for (const source of projected.sources) {
    const { serviceAccountToken, downwardAPI } = source
    if (source.configMap)
      for (const file of dataFiles(pod, source.configMap, 'ConfigMap', sources)) files.set(...file)
    if (source.secret) for (const file of dataFiles(pod, source.secret, 'Secret', sources)) files.set(...file)
    if (serviceAccountToken) {
      const { audience, expirationSeconds, path } = serviceAccountToken
      files.set(path, Buffer.from(await sources.token(audience, expirationSeconds)))
    }
    for (const { path, fieldRef } of downwardAPI?.items ?? []) {
      files.set(path, Buffer.from(fieldOf(pod, fieldRef.fieldPath, sources)))
    }
  }
  return files
}

function dataFiles(pod: Pod, source: Source, kind: 'ConfigMap' | 'Secret', sources: Sources): Files {
  const name = source.secretName ?? source.name ?? ''
  const object = lookup(pod, kind, name, sources)
  if (!object && !source.optional) throw new NotThereYet(`${kind} ${name} is not there`)
  const values = object?.data ?? {}
  const items = source.items ?? Object.keys(values).map((key) => ({ key, path: key }))
  const files = new Map<string, Buffer>()
  for (const { key, path } of items) {
    const value = values[key]
    if (value !== undefined) files.set(path, Buffer.from(value, kind === 'Secret' ? 'base64' : 'utf8'))
    else if (!source.optional) throw new NotThereYet(`${kind} ${name} has no key ${key}`)
  }
  return files
}

function lookup(pod: Pod, kind: 'ConfigMap' | 'Secret', name: string, sources: Sources): Data | undefined {
  const { namespace } = pod.metadata
  return kind === 'Secret' ? sources.secret(namespace, name) : sources.configMap(namespace, name)
}

let generation = 0

function publish(at: string, files: Files, mode: number, fsGroup: number | undefined): void {
  generation += 1
  const version = `..v${generation}`
  for (const [path, content] of files) {
    const file = join(at, version, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    own(file, fsGroup === undefined ? mode : mode | 0o040, fsGroup)
  }
  mkdirSync(join(at, version), { recursive: true })
  const before = linkTarget(join(at, '..data'))
  symlinkSync(version, join(at, '..new'))
  renameSync(join(at, '..new'), join(at, '..data'))
  for (const top of new Set([...files.keys()].map((path) => path.split('/')[0] ?? ''))) {
    if (linkTarget(join(at, top)) === undefined) symlinkSync(`..data/${top}`, join(at, top))
  }
  if (before !== undefined) rmSync(join(at, before), { recursive: true, force: true })
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function own(path: string, mode: number, group: number | undefined): void {
  if (group !== undefined) chownSync(path, 0, group)
  chmodSync(path, mode)
}

/** Returns the variables of a container. Throws NotThereYet. */
export function environmentOf(pod: Pod, container: Container, sources: Sources): Record<string, string> {
  const result: Record<string, string> = {}
  for (const entry of container.env ?? []) {
    const value = valueOf(pod, entry, sources)
    if (value === undefined) continue
    result[entry.name] = entry.valueFrom ? value : expand(value, result)
  }
  return result
}

function valueOf(pod: Pod, { value = '', valueFrom }: EnvVar, sources: Sources): string | undefined {
  if (!valueFrom) return value
  const { secretKeyRef, configMapKeyRef, fieldRef } = valueFrom
  if (fieldRef) return fieldOf(pod, fieldRef.fieldPath, sources)
  if (secretKeyRef) {
    const encoded = keyOf(pod, 'Secret', secretKeyRef, sources)
    return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8')
  }
  if (configMapKeyRef) return keyOf(pod, 'ConfigMap', configMapKeyRef, sources)
  throw new Error(`the node has no values such as ${JSON.stringify(valueFrom)}`)
}

function keyOf(pod: Pod, kind: 'ConfigMap' | 'Secret', ref: KeyRef, sources: Sources): string | undefined {
  const value = lookup(pod, kind, ref.name, sources)?.data?.[ref.key]
  if (value === undefined && !ref.optional) throw new NotThereYet(`${kind} ${ref.name} has no key ${ref.key}`)
  return value
}

function fieldOf({ metadata }: Pod, path: string, { podAddress }: Sources): string {
  if (path === 'metadata.name') return metadata.name
  if (path === 'metadata.namespace') return metadata.namespace
  if (path === 'metadata.uid') return metadata.uid
  if (path === 'status.podIP') return podAddress
  throw new Error(`the node has no field ${path}`)
}
