/**
 * Collects what a runtime configuration needs from its pod: environment variables from Secrets, mounted Secrets and
 * ConfigMaps, and their revisions. Secrets are never written to the configuration file.
 *
 * Objects that only one of several backends needs are optional: without such a Secret, the pod still starts, and the
 * runtime excludes the backend. All other objects are required.
 *
 * Pods mount whole directories, never single files with subPath, because the kubelet does not update such files. The
 * revisions are combined in one annotation of the pod template, so a rotated Secret restarts the pods.
 */
import { hashOf, type SecretRef, shortName, byText } from '../../schemas/index.ts'
import type { ContainerEnvVar, KeyToPath, VolumeSpec, VolumeMount } from '../children/pod.ts'

export class PodNeeds {
  #env = new Map<string, ContainerEnvVar>()
  #volumes = new Map<string, VolumeSpec>()
  #mounts = new Map<string, VolumeMount>()
  #revisions = new Map<string, string>()
  #isOptional = false

  /**
   * Returns a view through which optional needs are added. Secrets and ConfigMaps added through the view may be missing
   * when a pod starts.
   */
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

  /** Adds an environment variable from a Secret and returns its name for the configuration. */
  secretEnv(name: string, { name: secret, key }: SecretRef): string {
    this.#env.set(name, { name, valueFrom: { secretKeyRef: { name: secret, key, ...this.#optional } } })
    return name
  }

  /** True when the variable is already set. */
  has(name: string): boolean {
    return this.#env.has(name)
  }

  fieldEnv(name: string, fieldPath: string): void {
    this.#env.set(name, { name, valueFrom: { fieldRef: { fieldPath } } })
  }

  /** Mounts selected keys of a Secret in the directory `mountPath`, readable by the pod's group. */
  secretFiles(volume: string, mountPath: string, secretName: string, items: readonly KeyToPath[]): void {
    this.#add(volume, mountPath, (name) => ({
      name,
      secret: { secretName, items, defaultMode: 0o440, ...this.#optional },
    }))
  }

  /** Mounts a token for the pod's ServiceAccount, which the kubelet renews. */
  accountToken(
    volume: string,
    mountPath: string,
    token: { readonly path: string; readonly audience: string; readonly expirationSeconds: number },
  ): void {
    this.#add(volume, mountPath, (name) => ({
      name,
      projected: { sources: [{ serviceAccountToken: token }] },
    }))
  }

  /** Mounts a ConfigMap, or selected keys of it, in the directory `mountPath`. */
  configFiles(volume: string, mountPath: string, configMap: string, items?: readonly KeyToPath[]): void {
    this.#add(volume, mountPath, (name) => ({
      name,
      configMap: { name: configMap, ...(items && { items }), ...this.#optional },
    }))
  }

  /** Adds a writable directory that exists for the lifetime of the pod. */
  scratch(volume: string, mountPath: string): void {
    const name = volumeName(volume)
    this.#volumes.set(name, { name, emptyDir: {} })
    this.#mounts.set(mountPath, { name, mountPath })
  }

  /** Adds the revision of an object that is not part of the pod template. A changed revision replaces the pods. */
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

  /** Hash of all revisions; undefined without revisions. */
  get revisionHash(): string | undefined {
    return this.#revisions.size === 0 ? undefined : hashOf(Object.fromEntries(this.#revisions))
  }
}

/** Returns a DNS label. Appends a hash to names with a dot, because `a.b` would otherwise collide with `a-b`. */
function volumeName(text: string): string {
  return shortName(text.includes('.') ? `${text.replaceAll('.', '-')}-${hashOf(text).slice(0, 8)}` : text, 63)
}
