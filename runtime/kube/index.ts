/**
 * Public API of the Kubernetes module: what pods of ours ask of the API server, and the streams of a container. The client
 * for kubeconfigs and the WebSocket are loaded only where they are needed.
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

export type KubeClient = typeof import('./client.ts')

export function loadKubeClient(): Promise<KubeClient> {
  return import('./client.ts')
}

export type AttachModule = typeof import('./attachment.ts')

export function loadAttach(): Promise<AttachModule> {
  return import('./attachment.ts')
}
