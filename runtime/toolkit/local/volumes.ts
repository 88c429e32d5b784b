/**
 * Maps a pod's volumes and environment to this machine: writes ConfigMaps and Secrets to folders, and resolves
 * referenced values in the local cluster.
 *
 * Files are replaced by rename, so that a watching process never reads a partial file. Folders have mode 0700, because
 * they can contain Secrets.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { GatehouseError } from '../../../schemas/index.ts'
import type { LocalObject } from '../manifests/objects.ts'
import {
  type LocalContainer,
  type LocalEnvVar,
  type LocalPodTemplate,
  type LocalVolume,
  expand,
} from './pods.ts'

/** Maps the pod's mount paths to local folders. */
export type Mounts = ReadonlyMap<string, string>

/** Writes the volumes that `container` mounts below `folder`. `localise` rewrites addresses in text files. */
export function writeVolumes(
  template: LocalPodTemplate,
  container: LocalContainer,
  context: {
    namespace: string
    objects: readonly LocalObject[]
    folder: string
    localise: (s: string) => string
  },
): Mounts {
  const mounts = new Map<string, string>()
  for (const mount of container.volumeMounts ?? []) {
    mounts.set(mount.mountPath, join(context.folder, mount.name, mount.subPath ?? ''))
  }
  for (const volume of template.spec.volumes ?? []) {
    const target = join(context.folder, volume.name)
    mkdirSync(target, { recursive: true, mode: 0o700 })
    for (const [path, content] of filesOf(volume, context)) {
      writeIfChanged(join(target, path), localPaths(context.localise(content), mounts))
    }
  }
  return mounts
}

/** Replaces pod paths with local paths in a single pass, because a local path can start with another pod path. */
export function localPaths(text: string, mounts: Mounts): string {
  if (mounts.size === 0) return text
  const longestFirst = [...mounts.keys()].sort((a, b) => b.length - a.length).map(escapeRegExp)
  const pattern = new RegExp(`(?<![\\w/.-])(?:${longestFirst.join('|')})(?=[/"'\\s,]|$)`, 'gm')
  return text.replaceAll(pattern, (path) => mounts.get(path) ?? path)
}

/**
 * Returns a container's environment, excluding unset optional references. Throws when a required reference is missing.
 */
export function environmentOf(
  container: LocalContainer,
  context: { object: LocalObject; objects: readonly LocalObject[] },
): Record<string, string> {
  const result: Record<string, string> = {}
  for (const entry of container.env ?? []) {
    const value = valueOf(entry, context)
    if (value !== undefined) result[entry.name] = entry.valueFrom ? value : expand(value, result)
  }
  return result
}

function valueOf(
  entry: LocalEnvVar,
  { object, objects }: { object: LocalObject; objects: readonly LocalObject[] },
): string | undefined {
  const { secretKeyRef, configMapKeyRef, fieldRef } = entry.valueFrom ?? {}
  const namespace = object.metadata.namespace ?? 'default'
  if (secretKeyRef) {
    const secret = find(objects, 'Secret', namespace, secretKeyRef.name)
    const value = secret && dataOf(secret)[secretKeyRef.key]
    if (value !== undefined || secretKeyRef.optional) return value
    throw missingReference('Secret', secretKeyRef.name, secretKeyRef.key, entry.name)
  }
  if (configMapKeyRef) {
    const map = find(objects, 'ConfigMap', namespace, configMapKeyRef.name)
    const value = map?.data?.[configMapKeyRef.key]
    if (value !== undefined || configMapKeyRef.optional) return value
    throw missingReference('ConfigMap', configMapKeyRef.name, configMapKeyRef.key, entry.name)
  }
  if (fieldRef?.fieldPath === 'metadata.name') return `${object.metadata.name}-local`
  if (fieldRef?.fieldPath === 'metadata.namespace') return namespace
  return entry.value
}

function missingReference(kind: string, name: string, key: string, variable: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', {
    detail: `${variable} requires key "${key}" of ${kind} "${name}", but no manifest declares it`,
  })
}

function filesOf(
  volume: LocalVolume,
  { namespace, objects }: { namespace: string; objects: readonly LocalObject[] },
): [path: string, content: string][] {
  const source = volume.configMap ?? volume.secret
  if (!source) return []
  const kind = volume.configMap ? 'ConfigMap' : 'Secret'
  const name = volume.configMap?.name ?? volume.secret?.secretName ?? ''
  const object = find(objects, kind, namespace, name)
  const data = object ? dataOf(object) : {}
  if (!source.items) return Object.entries(data)
  return source.items.flatMap(({ key, path }) => (data[key] === undefined ? [] : [[path, data[key]]]))
}

function find(objects: readonly LocalObject[], kind: string, namespace: string, name: string) {
  return objects.find(
    (o) => o.kind === kind && o.metadata.namespace === namespace && o.metadata.name === name,
  )
}

function dataOf(object: LocalObject): Record<string, string> {
  if (object.kind !== 'Secret') return object.data ?? {}
  const decoded = Object.entries(object.data ?? {}).map(([key, value]) => [
    key,
    Buffer.from(value, 'base64').toString('utf8'),
  ])
  return { ...Object.fromEntries(decoded), ...(object['stringData'] as Record<string, string> | undefined) }
}

function writeIfChanged(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  if (readIfPresent(path) === content) return
  const temporary = `${path}.tmp`
  writeFileSync(temporary, content, { mode: 0o600 })
  renameSync(temporary, path)
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
