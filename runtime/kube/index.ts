/**
 * Public API of the Kubernetes module: what pods of ours ask of the API server, and the streams of a container. The
 * WebSocket is loaded only where it is needed.
 */
export type { Attachment, ContainerName } from './attachment.ts'
export {
  type ClusterApi,
  clusterApi,
  corePath,
  getObject,
  mergeInto,
} from './cluster-api.ts'
export { type ContainerRun, type PodState, readPodState } from './pod-state.ts'

export type AttachModule = typeof import('./attachment.ts')

export function loadAttach(): Promise<AttachModule> {
  return import('./attachment.ts')
}
