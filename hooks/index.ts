/**
 * Public API of the hooks half: for the command line, the generator of manifests, and tests. The server (`hooks/server/`) is not
 * among it: a program that asks hooks in its own process is without Express.
 */
export {
  type AdmissionReview,
  allowDelete,
  reviewAdmission,
  validateResource,
  type AdmissionVerdict,
} from './admission/index.ts'
export { referenceCheck, referencesOf, type SpecReference } from './references/among.ts'
export { memberKinds } from './references/members.ts'
export { workloadState } from './children/workload.ts'
export type { KubeObject } from './kube.ts'
export type { CustomizeResponse, RelatedRule, SyncResponse } from './sync/protocol.ts'
export type { ChildKind, RelatedKind } from './kind-hooks.ts'
export { type HookEntry, type HookRegistry, makeHooks } from './bound-hooks.ts'
export { type DefaultRedis, defaultSettings, type HookSettings, hookSettings } from './settings.ts'
export type { ClusterResponse, ResourcePath, ApiServer } from './api-server.ts'

/** Requests to the API server of a kubeconfig. Loaded only when a cluster is spoken to. */
export function loadApiServer(): Promise<typeof import('./api-server.ts')> {
  return import('./api-server.ts')
}
