/**
 * The parts of the official Kubernetes client that the hooks use. Imported only when a cluster is spoken to; naming the
 * parts lets the bundler leave the rest of a large library out.
 */
export {
  AdmissionregistrationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node'
