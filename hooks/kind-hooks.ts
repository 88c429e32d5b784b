/**
 * What a kind's folder exports to the registry: its hooks as pure functions, and the kinds of objects they touch.
 */
import type { HookEvent } from './server/events.ts'
import type { KubeObject } from './kube.ts'
import type { CustomizeRequest, CustomizeResponse, SyncRequest, SyncResponse } from './sync/protocol.ts'
import type { HookSettings } from './settings.ts'

export interface ChildKind {
  readonly apiVersion: string
  readonly kind: string
  /** Plural resource name. */
  readonly resource: string
  readonly updateStrategy: 'InPlace' | 'OnDelete'
}

export interface RelatedKind {
  readonly apiVersion: string
  readonly resource: string
}

/** What a kind's folder exports: pure functions of request and settings. */
export interface KindHooks {
  readonly kind: string
  readonly childKinds: readonly ChildKind[]
  /** Everything that a customize answer may name. */
  readonly relatedKinds: readonly RelatedKind[]
  readonly customize: (request: CustomizeRequest) => CustomizeResponse
  readonly sync: (request: SyncRequest, settings: HookSettings) => SyncResponse
  /** Kubernetes Events that the state of this parent calls for. */
  readonly events?: (parent: KubeObject, settings: HookSettings) => readonly HookEvent[]
}
