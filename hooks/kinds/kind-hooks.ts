/**
 * The interface between a kind's folder and the registry. Routes, admission, references and manifests are derived from
 * this interface.
 */
import type { KindName, Kinds, Violation } from '../../schemas/index.ts'
import type { ChildKind } from '../sync/child-kinds.ts'
import type { RelatedKind } from '../sync/rules.ts'
import type { HookEvent, CustomizeRequest, CustomizeResponse, SyncResponse } from '../sync/protocol.ts'
import type { KubeObject } from '../base/kube.ts'
import type { SyncContext } from '../sync/context.ts'
import type { CheckSettings, HookSettings } from '../base/settings.ts'

/** A kind's checks and hooks, as pure functions of the request and the settings. */
export interface KindHooks<K extends KindName> {
  readonly kind: K
  readonly childKinds: readonly ChildKind[]
  /** All kinds that a customize response may contain. */
  readonly relatedKinds: readonly RelatedKind[]
  /**
   * Returns violations that the schema cannot express, for one resource that matches its schema and contains all
   * defaults. The webhook, the command line and the syncs call this function, which does not look at other objects.
   */
  readonly validate: ResourceCheck<K>
  /** Returns warnings for a valid resource. kubectl displays at most 120 characters of each warning. */
  readonly warnings?: (resource: Kinds[K]) => readonly string[]
  readonly customize: (request: CustomizeRequest, settings: HookSettings) => CustomizeResponse
  readonly sync: (context: SyncContext<K>) => SyncResponse
  /** True when a sync of a small request can take long. The server then always uses a worker thread. */
  readonly isExpensive?: boolean
  /** Returns the Kubernetes Events that the parent's current state requires. */
  readonly events?: (parent: KubeObject, violationsOf: CheckObject) => readonly HookEvent[]
}

type ResourceCheck<K extends KindName> = (resource: Kinds[K], settings: CheckSettings) => readonly Violation[]

/** Returns all violations that the schema and the kind's `validate` find in a stored object of any kind. */
export type CheckObject = (object: unknown) => readonly Violation[]
