/** The parts of a Pod that the node uses. The API server fills in defaults. */
import type { KubeObject } from './api.ts'

export interface KeyRef {
  readonly name: string
  readonly key: string
  readonly optional?: boolean
}

export interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly secretKeyRef?: KeyRef
    readonly configMapKeyRef?: KeyRef
    readonly fieldRef?: { readonly fieldPath: string }
  }
}

export interface Probe {
  readonly httpGet?: { readonly path?: string; readonly port: number | string; readonly scheme?: string }
  readonly tcpSocket?: { readonly port: number | string }
  readonly periodSeconds?: number
}

interface SecurityContext {
  readonly runAsUser?: number
  readonly runAsGroup?: number
  readonly runAsNonRoot?: boolean
  readonly fsGroup?: number
  readonly readOnlyRootFilesystem?: boolean
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly workingDir?: string
  readonly env?: readonly EnvVar[]
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[]
  readonly volumeMounts?: readonly {
    readonly name: string
    readonly mountPath: string
    readonly readOnly?: boolean
    readonly subPath?: string
  }[]
  readonly stdin?: boolean
  readonly startupProbe?: Probe
  readonly readinessProbe?: Probe
  readonly securityContext?: SecurityContext
}

export interface KeyToPath {
  readonly key: string
  readonly path: string
}

export interface Source {
  readonly name?: string
  readonly secretName?: string
  readonly items?: readonly KeyToPath[]
  readonly optional?: boolean
  readonly defaultMode?: number
}

export interface ProjectedSource {
  readonly configMap?: Source
  readonly secret?: Source
  readonly serviceAccountToken?: {
    readonly path: string
    readonly audience?: string
    readonly expirationSeconds?: number
  }
  readonly downwardAPI?: {
    readonly items: readonly { readonly path: string; readonly fieldRef: { readonly fieldPath: string } }[]
  }
}

export interface Volume {
  readonly name: string
  readonly configMap?: Source
  readonly secret?: Source
  readonly emptyDir?: object
  /** Claims are always bound to an empty folder that is deleted with the pod. */
  readonly persistentVolumeClaim?: object
  readonly hostPath?: { readonly path: string }
  readonly projected?: { readonly sources: readonly ProjectedSource[]; readonly defaultMode?: number }
}

export interface Pod extends KubeObject {
  readonly spec: {
    readonly nodeName?: string
    readonly serviceAccountName?: string
    readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never'
    readonly terminationGracePeriodSeconds?: number
    readonly securityContext?: SecurityContext
    readonly initContainers?: readonly Container[]
    readonly containers: readonly Container[]
    readonly volumes?: readonly Volume[]
  }
  readonly status?: { readonly phase?: string }
}
