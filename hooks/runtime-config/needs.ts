/**
 * Collects what a runtime configuration needs from its pod: environment from Secrets, mounted Secrets and ConfigMaps,
 * and the revisions of all of them. Secrets never pass through the configuration file.
 *
 * What belongs to one backend of several is optional: a Secret that is gone keeps no pod from starting, and the runtime
 * leaves out the backend whose variable or file is missing. Everything else is required.
 *
 * Whole directories are mounted, never single files by subPath: the kubelet does not update those. The revisions end up
 * in one annotation of the pod template, so that a rotated Secret rolls the pods.
 */
import { hashOf, type SecretRef, shortName, byText } from '../../schemas/index.ts'
import type { ContainerEnvVar, KeyToPath, VolumeSpec, VolumeMount } from '../children/pod.ts'

export class PodNeeds {
  #env = new Map<string, ContainerEnvVar>()
  #volumes = new Map<string, VolumeSpec>()
  #mounts = new Map<string, VolumeMount>()
  #revisions = new Map<string, string>()
  #isOptional = false

  /** The same needs; Secrets and ConfigMaps that are asked for through it may be missing when a pod starts. */
  forBackends(): PodNeeds {
    const view = new PodNeeds()
    view.#env = this.#env
    view.#volumes = this.#volumes
    view.#mounts = this.#mounts
    view.#revisions = this.#revisions
    view.#isOptional = true
    return view
  }

  literal(name: string, value: string): void {
    if (value !== '') this.#env.set(name, { name, value })
  }

  /** An environment variable from a Secret; returns its name, for the configuration. */
  secretEnv(name: string, { name: secret, key }: SecretRef): string {
    this.#env.set(name, { name, valueFrom: { secretKeyRef: { name: secret, key, ...this.#optional } } })
    return name
  }

  /** True when the variable is set already. */
  has(name: string): boolean {
    return this.#env.has(name)
  }

  fieldEnv(name: string, fieldPath: string): void {
    this.#env.set(name, { name, valueFrom: { fieldRef: { fieldPath } } })
  }

  /** Mounts chosen keys of a Secret as the directory `mountPath`. Readable by the group, which is the pod's. */
  secretFiles(volume: string, mountPath: string, secretName: string, items: readonly KeyToPath[]): void {
    this.#add(volume, mountPath, (name) => ({
      name,
      secret: { secretName, items, defaultMode: 0o440, ...this.#optional },
    }))
  }

  /** Mounts a ConfigMap, or chosen keys of it, as the directory `mountPath`. */
  configFiles(volume: string, mountPath: string, configMap: string, items?: readonly KeyToPath[]): void {
    this.#add(volume, mountPath, (name) => ({
      name,
      configMap: { name: configMap, ...(items && { items }), ...this.#optional },
    }))
  }

  /** A writable directory that ends with the pod. */
  scratch(volume: string, mountPath: string): void {
    const name = volumeName(volume)
    this.#volumes.set(name, { name, emptyDir: {} })
    this.#mounts.set(mountPath, { name, mountPath })
  }

  /** Something outside the pod template on which the pods must not be older. */
  revision(what: string, revision: string | undefined): void {
    if (revision !== undefined) this.#revisions.set(what, revision)
  }

  get #optional(): { readonly optional?: true } {
    return this.#isOptional ? { optional: true } : {}
  }

  #add(volume: string, mountPath: string, make: (name: string) => VolumeSpec): void {
    const name = volumeName(volume)
    this.#volumes.set(name, make(name))
    this.#mounts.set(mountPath, { name, mountPath, readOnly: true })
  }

  get env(): readonly ContainerEnvVar[] {
    return [...this.#env.values()].sort((a, b) => byText(a.name, b.name))
  }

  get volumes(): readonly VolumeSpec[] {
    return [...this.#volumes.values()].sort((a, b) => byText(a.name, b.name))
  }

  get mounts(): readonly VolumeMount[] {
    return [...this.#mounts.values()].sort((a, b) => byText(a.mountPath, b.mountPath))
  }

  /** Changes when any of the revisions does; undefined when there is none. */
  get revisionHash(): string | undefined {
    return this.#revisions.size === 0 ? undefined : hashOf(Object.fromEntries(this.#revisions))
  }
}

/** A volume name: a DNS label. Names of resources may have dots, and `a.b` must not become another one's `a-b`. */
function volumeName(text: string): string {
  return shortName(text.includes('.') ? `${text.replaceAll('.', '-')}-${hashOf(text).slice(0, 8)}` : text, 63)
}
