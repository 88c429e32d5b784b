/**
 * What a kind's folder exports to the registry: its checks and hooks as pure functions, and the kinds of objects that
 * they touch. Everything else that knows kinds (routes, admission, references, manifests) is derived from it.
 */
import type { KindName, Kinds, Violation } from '../../schemas/index.ts'
import type { ChildKind } from '../sync/child-kinds.ts'
import type { RelatedKind } from '../sync/rules.ts'
import type { HookEvent, CustomizeRequest, CustomizeResponse, SyncResponse } from '../sync/protocol.ts'
import type { KubeObject } from '../base/kube.ts'
import type { SyncContext } from '../sync/context.ts'
import type { CheckSettings, HookSettings } from '../base/settings.ts'

/** What a kind's folder exports: pure functions of request and settings. */
export interface KindHooks<K extends KindName> {
  readonly kind: K
  readonly childKinds: readonly ChildKind[]
  /** Everything that a customize answer may name. */
  readonly relatedKinds: readonly RelatedKind[]
  /**
   * What the schema cannot say: violations of one resource by itself, with its defaults, that passed its schema. Serves
   * the webhook, the command line and the syncs; looks at no other object.
   */
  readonly validate: ResourceCheck<K>
  /** What the author of a valid resource should know. At most 120 characters each are shown by kubectl. */
  readonly warnings?: (resource: Kinds[K]) => readonly string[]
  readonly customize: (request: CustomizeRequest, settings: HookSettings) => CustomizeResponse
  readonly sync: (context: SyncContext<K>) => SyncResponse
  /** Kubernetes Events that the state of this parent calls for. */
  readonly events?: (parent: KubeObject, violationsOf: CheckObject) => readonly HookEvent[]
}

type ResourceCheck<K extends KindName> = (resource: Kinds[K], settings: CheckSettings) => readonly Violation[]

/** All violations of a stored object of whatever kind: its schema, and its kind's `validate`. */
export type CheckObject = (object: unknown) => readonly Violation[]
