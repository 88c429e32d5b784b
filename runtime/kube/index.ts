/**
 * Public API of the Kubernetes module: API requests from Gatehouse pods, and container streams. The WebSocket library
 * is loaded on demand.
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
