/**
 * Types for the parts of a pod that the hooks generate.
 * Source: Kubernetes core/v1.
 */
export interface SecretKeySelector {
  readonly name: string
  readonly key: string
  readonly optional?: boolean
}

export interface ContainerEnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly secretKeyRef?: SecretKeySelector
    readonly fieldRef?: { readonly fieldPath: string }
  }
}

export interface VolumeMount {
  readonly name: string
  readonly mountPath: string
  readonly readOnly?: boolean
}

export interface KeyToPath {
  readonly key: string
  readonly path: string
}

export interface VolumeSpec {
  readonly name: string
  readonly configMap?: {
    readonly name: string
    readonly items?: readonly KeyToPath[]
    readonly optional?: boolean
  }
  readonly secret?: {
    readonly secretName: string
    readonly items?: readonly KeyToPath[]
    readonly defaultMode?: number
    readonly optional?: boolean
  }
  readonly projected?: {
    readonly sources: readonly {
      readonly serviceAccountToken?: {
        readonly path: string
        readonly audience?: string
        readonly expirationSeconds: number
      }
      readonly configMap?: { readonly name: string; readonly items: readonly KeyToPath[] }
    }[]
  }
  readonly emptyDir?: { readonly sizeLimit?: string }
  readonly hostPath?: { readonly path: string }
}

export interface ContainerPort {
  readonly name?: string
  readonly containerPort: number
  readonly protocol?: 'TCP'
}

export interface Probe {
  readonly httpGet?: {
    readonly path: string
    readonly port: string | number
    readonly scheme?: 'HTTPS'
  }
  readonly tcpSocket?: { readonly port: string | number }
  readonly initialDelaySeconds?: number
  readonly periodSeconds?: number
  readonly timeoutSeconds?: number
  readonly failureThreshold?: number
}

export interface Resources {
  readonly limits?: Readonly<Record<string, string>>
  readonly requests?: Readonly<Record<string, string>>
}

export interface ContainerSpec {
  readonly name: string
  readonly image: string
  readonly imagePullPolicy?: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly ContainerEnvVar[]
  readonly ports?: readonly ContainerPort[]
  readonly volumeMounts?: readonly VolumeMount[]
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
  readonly resources?: Resources
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } }
  readonly securityContext?: Readonly<Record<string, unknown>>
}

export interface PodSpec {
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly enableServiceLinks?: boolean
  readonly terminationGracePeriodSeconds?: number
  /** A user's list replaces this list. */
  readonly topologySpreadConstraints?: readonly object[]
  readonly securityContext?: Readonly<Record<string, unknown>>
  readonly imagePullSecrets?: readonly { readonly name: string }[]
  readonly initContainers?: readonly ContainerSpec[]
  readonly containers: readonly ContainerSpec[]
  readonly volumes?: readonly VolumeSpec[]
}

export interface PodTemplateSpec {
  readonly metadata: {
    readonly labels: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: PodSpec
}

/** Returns the same probe over HTTPS. The kubelet does not verify the certificate. */
export function httpsProbe(probe: Probe): Probe {
  return probe.httpGet ? { ...probe, httpGet: { ...probe.httpGet, scheme: 'HTTPS' } } : probe
}

interface ProbeTimes {
  /** Seconds before the first probe. Default: 0. */
  readonly delay?: number
  /** Seconds between probes. */
  readonly period: number
  /** Seconds. */
  readonly timeout: number
  /** Consecutive failures before the probe counts as failed. */
  readonly failures: number
}

/** Returns an HTTP probe for the port named `http`. */
export function httpProbe(path: string, { delay, period, timeout, failures }: ProbeTimes): Probe {
  return {
    httpGet: { path, port: 'http' },
    ...(delay !== undefined && { initialDelaySeconds: delay }),
    periodSeconds: period,
    timeoutSeconds: timeout,
    failureThreshold: failures,
  }
}

/**
 * Omits an empty list. The API server drops empty lists, so the comparison would otherwise find a change at every sync.
 */
export function unlessEmpty<K extends string, T>(
  key: K,
  list: readonly T[],
): { readonly [P in K]?: readonly T[] } {
  return (list.length > 0 ? { [key]: list } : {}) as { readonly [P in K]?: readonly T[] }
}

/** Returns the resource's image pull Secrets, followed by the installation's, without duplicates. */
export function pullSecrets(
  own: readonly { readonly name: string }[] | undefined,
  installation: readonly string[],
): { readonly imagePullSecrets?: readonly { readonly name: string }[] } {
  const names = new Set([...(own ?? []).map(({ name }) => name), ...installation])
  return unlessEmpty(
    'imagePullSecrets',
    [...names].filter((name) => name !== '').map((name) => ({ name })),
  )
}
