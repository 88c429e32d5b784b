/**
 * The parts of a pod template that a local process needs, typed.
 */
import type { KubeObject } from '../local/objects.ts'

export interface EnvVar {
  name: string
  value?: string
  valueFrom?: {
    secretKeyRef?: { name: string; key: string; optional?: boolean }
    configMapKeyRef?: { name: string; key: string; optional?: boolean }
    fieldRef?: { fieldPath: string }
  }
}

export interface Container {
  name: string
  image: string
  command?: string[]
  args?: string[]
  env?: EnvVar[]
  ports?: { containerPort: number; name?: string }[]
  volumeMounts?: { name: string; mountPath: string; subPath?: string }[]
  readinessProbe?: { httpGet?: { path: string; port: number | string } }
}

export interface Volume {
  name: string
  configMap?: { name: string; items?: { key: string; path: string }[] }
  secret?: { secretName: string; items?: { key: string; path: string }[] }
  emptyDir?: object
}

export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }
  spec: { containers: Container[]; volumes?: Volume[] }
}

/** The pod template of a Deployment or StatefulSet; undefined for other kinds. */
export function podTemplateOf(object: KubeObject): PodTemplate | undefined {
  if (object.kind !== 'Deployment' && object.kind !== 'StatefulSet') return undefined
  return (object.spec as { template?: PodTemplate } | undefined)?.template
}

/** Desired replicas; one when unset, as the API server defaults it. */
export function replicasOf(object: KubeObject): number {
  return (object.spec as { replicas?: number } | undefined)?.replicas ?? 1
}
