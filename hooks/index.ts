/**
 * Public API of the hooks half: for the command line, the generator of manifests, and tests. The server (`hooks/server/`) is not
 * among it: a program that asks hooks in its own process is without Express.
 */
export { validateResource, type AdmissionVerdict } from './admission/validate.ts'
export { type AdmissionReview, allowDelete, reviewAdmission } from './admission/review.ts'
export { referenceCheck, referencesOf, type SpecReference } from './admission/reference-check.ts'
export { memberKinds } from './references/members.ts'
export { workloadState } from './sync/workload-state.ts'
export type { KubeObject } from './base/kube.ts'
export type { CustomizeResponse, RelatedRule, SyncResponse } from './sync/protocol.ts'
export type { RelatedKind } from './sync/rules.ts'
export type { ChildKind } from './sync/child-kinds.ts'
export { type HookEntry, type HookRegistry, makeHooks } from './registry/hook-registry.ts'
export { type DefaultRedis, defaultSettings, type HookSettings, hookSettings } from './base/settings.ts'
export type { ClusterResponse, ResourcePath, ApiServer } from './base/api-server.ts'

/** Requests to the API server of a kubeconfig. Loaded only when a cluster is spoken to. */
export function loadApiServer(): Promise<typeof import('./base/api-server.ts')> {
  return import('./base/api-server.ts')
}
