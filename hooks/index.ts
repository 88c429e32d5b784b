/**
 * Public API of the hooks half for the command line, the manifest generator and tests. Excludes the server
 * (`hooks/server/`), because programs that call hooks in their own process must not load Express.
 */
export { validateResource, type AdmissionVerdict } from './admission/validate.ts'
export { type AdmissionReview, allowDelete, reviewAdmission } from './admission/review.ts'
export { referenceCheck, referencesOf, type SpecReference } from './admission/reference-check.ts'
export { memberKinds } from './references/members.ts'
export { type OfflineService, offlineService } from './kinds/mcpopenapiserver/offline.ts'
export { workloadState } from './sync/workload-state.ts'
export type { KubeObject } from './base/kube.ts'
export type { CustomizeResponse, RelatedRule, SyncResponse } from './sync/protocol.ts'
export type { RelatedKind } from './sync/rules.ts'
export type { ChildKind } from './sync/child-kinds.ts'
export { type HookEntry, type HookRegistry, makeHooks } from './registry/hook-registry.ts'
export { type DefaultRedis, defaultSettings, type HookSettings, hookSettings } from './base/settings.ts'
export type { ClusterResponse, ResourcePath, ApiServer } from './base/api-server.ts'

/** Loads the client for a kubeconfig's API server. Call this function only if you need a cluster. */
export function loadApiServer(): Promise<typeof import('./base/api-server.ts')> {
  return import('./base/api-server.ts')
}
