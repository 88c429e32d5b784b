/**
 * The context of a sync: the request, typed access to its objects with defaults, and the conditions that the sync
 * builds.
 *
 * The context is derived from the request alone, and no state is kept between calls.
 */
import {
  apiVersion,
  hashOf,
  type KindName,
  type Kinds,
  type Violation,
  type SecretRef,
  withDefaults,
  byText,
} from '../../schemas/index.ts'
import { conditionOf, Conditions, type SyncFailure } from './conditions.ts'
import { type Fields, fieldsOf, isTerminating, type KubeObject } from '../base/kube.ts'
import { observedTime } from './observed-time.ts'
import { findByName, type SyncRequest } from './protocol.ts'
import type { HookSettings } from '../base/settings.ts'

const coreGroups = {
  ConfigMap: 'ConfigMap.v1',
  Secret: 'Secret.v1',
  Service: 'Service.v1',
  ServiceAccount: 'ServiceAccount.v1',
  Deployment: 'Deployment.apps/v1',
  StatefulSet: 'StatefulSet.apps/v1',
  HorizontalPodAutoscaler: 'HorizontalPodAutoscaler.autoscaling/v2',
  HTTPRoute: 'HTTPRoute.gateway.networking.k8s.io/v1',
  Ingress: 'Ingress.networking.k8s.io/v1',
} as const

/** Input to a sync, in addition to the request. */
export interface SyncOptions {
  readonly settings: HookSettings
  readonly violationsOf: (object: KubeObject) => readonly Violation[]
}

export class SyncContext<K extends KindName> {
  readonly request: SyncRequest
  readonly settings: HookSettings
  readonly conditions: Conditions
  /** The parent as stored. */
  readonly stored: KubeObject
  /** Errors in the parent's own manifest. `parent` is trustworthy only when this list is empty. */
  readonly violations: readonly Violation[]
  /** The parent with its defaults. */
  readonly parent: Kinds[K]

  /** Returns a related object's violations, from its schema and its kind's checks. */
  readonly violationsOf: (object: KubeObject) => readonly Violation[]

  constructor(request: SyncRequest, { settings, violationsOf }: SyncOptions, kind: K) {
    this.request = request
    this.settings = settings
    this.violationsOf = violationsOf
    this.stored = request.parent
    let time: string | undefined
    this.conditions = new Conditions(request.parent, () => (time ??= observedTime(request)))
    this.violations = violationsOf(request.parent)
    this.parent = filledCopy(request.parent, kind)
  }

  /** The parent's spec with defaults. Empty when the manifest has no spec, which is also a violation. */
  get spec(): Kinds[K]['spec'] {
    const spec: Kinds[K]['spec'] | null | undefined = this.parent.spec
    return spec ?? {}
  }

  get name(): string {
    return this.stored.metadata.name
  }

  get namespace(): string {
    return this.stored.metadata.namespace ?? ''
  }

  /** Returns related resources of a Gatehouse kind as stored, sorted by name, without those being deleted. */
  members(kind: string): readonly KubeObject[] {
    return (this.request.related.get(`${kind}.${apiVersion}`) ?? []).filter(
      (object) => !isTerminating(object),
    )
  }

  /** Returns a related resource of a Gatehouse kind, even when it is being deleted. */
  find(kind: string, name: string): KubeObject | undefined {
    return findByName(this.request.related, `${kind}.${apiVersion}`, name)
  }

  /** Returns a related resource with its defaults. Validate the resource before you use it. */
  filled<R extends KindName>(kind: R, name: string): Kinds[R] | undefined {
    const object = this.find(kind, name)
    return object && filledCopy(object, kind)
  }

  configMap(name: string): KubeObject | undefined {
    return findByName(this.request.related, coreGroups.ConfigMap, name)
  }

  secret(name: string): KubeObject | undefined {
    return findByName(this.request.related, coreGroups.Secret, name)
  }

  /** Returns the decoded value of a Secret's key; empty if the Secret or the key does not exist. */
  secretValue({ name, key }: SecretRef): string {
    const secret = this.secret(name)
    const plain = fieldsOf(secret?.['stringData'])[key]
    if (typeof plain === 'string') return plain
    const data = fieldsOf(secret?.['data'])[key]
    return typeof data === 'string' ? Buffer.from(data, 'base64').toString() : ''
  }

  /** Returns `Secret name, key k` for each reference whose Secret or key does not exist, sorted. */
  missingSecrets(refs: readonly SecretRef[]): readonly string[] {
    const missing = refs.filter(({ name, key }) => {
      const secret = this.secret(name)
      return (
        !secret ||
        !(Object.hasOwn(fieldsOf(secret['data']), key) || Object.hasOwn(fieldsOf(secret['stringData']), key))
      )
    })
    return [...new Set(missing.map(({ name, key }) => `Secret ${name}, key ${key}`))].sort(byText)
  }

  /** Returns the failure for missing Secrets or keys. `field` is the path of the references. */
  missingSecretsFailure(refs: readonly SecretRef[], reason: string, field?: string): SyncFailure | undefined {
    const missing = this.missingSecrets(refs).join('; ')
    if (missing === '') return undefined
    return { reason, message: field ? `${field}: not found: ${missing}` : `Not found: ${missing}` }
  }

  /**
   * Returns a hash that changes whenever one of the Secrets is written. The hash covers resource versions instead of
   * contents, because more users can read statuses than Secrets.
   */
  secretRevision(refs: readonly SecretRef[]): string {
    return this.#revision(
      'Secret',
      refs.map((ref) => ref.name),
    )
  }

  /** Returns a hash that changes whenever one of the ConfigMaps is written. */
  configMapRevision(names: readonly string[]): string {
    return this.#revision('ConfigMap', names)
  }

  #revision(kind: 'Secret' | 'ConfigMap', names: readonly string[]): string {
    const seen = [...new Set(names)].sort(byText).map((name) => {
      const object = findByName(this.request.related, coreGroups[kind], name)
      return [name, object?.metadata.uid ?? '', object?.metadata.resourceVersion ?? '']
    })
    // 64 bits are sufficient, because the hash is compared only with the previous revision.
    return hashOf(seen).slice(0, 16)
  }

  /** Returns an observed child. */
  child(kind: keyof typeof coreGroups, name: string): KubeObject | undefined {
    return findByName(this.request.children, coreGroups[kind], name)
  }
}

/** Context for functions that do not use the parent, so the parent can be of any kind. */
export type AnyContext = Omit<SyncContext<KindName>, 'parent' | 'spec'>

/** Returns `observedGeneration` and `conditions`. Metacontroller sets `observedGeneration` to the same value. */
export function observedFields(context: AnyContext): Fields {
  const { generation } = context.stored.metadata
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: context.conditions.list(),
  }
}

/** Adds defaults and drops the status, which can be large and is read from the stored object. */
function filledCopy<K extends KindName>(object: KubeObject, kind: K): Kinds[K] {
  const { status: _, ...rest } = object
  return withDefaults(ofKind(rest, kind))
}

/** Narrows the type of an object to its kind. Throws for any other kind, because that is a programming error. */
function ofKind<K extends KindName>(object: KubeObject, kind: K): KubeObject & { readonly kind: K } {
  if (isOfKind(object, kind)) return object
  throw new TypeError(`expected a ${kind}`)
}

function isOfKind<K extends KindName>(
  object: KubeObject,
  kind: K,
): object is KubeObject & { readonly kind: K } {
  return object.kind === kind
}

/** Returns a condition for the current generation; undefined when the condition is absent or outdated. */
export function currentCondition(
  object: KubeObject,
  type: string,
): Readonly<Record<string, unknown>> | undefined {
  const condition = conditionOf(object, type)
  const { generation } = object.metadata
  const seen = condition?.['observedGeneration']
  return seen === undefined || generation === undefined || seen === generation ? condition : undefined
}
