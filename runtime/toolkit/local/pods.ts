/** Types for the parts of a pod template that a local process needs. */
import type { LocalObject } from '../manifests/objects.ts'

export interface LocalEnvVar {
  name: string
  value?: string
  valueFrom?: {
    secretKeyRef?: { name: string; key: string; optional?: boolean }
    configMapKeyRef?: { name: string; key: string; optional?: boolean }
    fieldRef?: { fieldPath: string }
  }
}

export interface LocalContainer {
  name: string
  image: string
  command?: string[]
  args?: string[]
  env?: LocalEnvVar[]
  ports?: { containerPort: number; name?: string }[]
  volumeMounts?: { name: string; mountPath: string; subPath?: string }[]
  readinessProbe?: { httpGet?: { path: string; port: number | string } }
}

export interface LocalVolume {
  name: string
  configMap?: { name: string; items?: { key: string; path: string }[] }
  secret?: { secretName: string; items?: { key: string; path: string }[] }
  emptyDir?: object
}

export interface LocalPodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }
  spec: { containers: LocalContainer[]; volumes?: LocalVolume[] }
}

/** Returns the pod template of a Deployment or StatefulSet, or undefined for other kinds. */
export function podTemplateOf(object: LocalObject): LocalPodTemplate | undefined {
  if (object.kind !== 'Deployment' && object.kind !== 'StatefulSet') return undefined
  return (object.spec as { template?: LocalPodTemplate } | undefined)?.template
}

/** Returns the desired number of replicas. Default: one, as in the API server. */
export function replicasOf(object: LocalObject): number {
  return (object.spec as { replicas?: number } | undefined)?.replicas ?? 1
}

/**
 * Expands a container's variable value, command word or argument as the kubelet does: `$(NAME)` becomes the value of a
 * variable and `$$` becomes `$`. Unknown names and all other text stay unchanged.
 * Source: Kubernetes core/v1, EnvVar.value, Container.command and args.
 */
export function expand(text: string, known: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$(?:(\$)|\(([^)]*)\))/g, (whole, escaped: string | undefined, name: string) => {
    if (escaped !== undefined) return '$'
    return Object.hasOwn(known, name) ? (known[name] ?? whole) : whole
  })
}
