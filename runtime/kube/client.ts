/** The parts of the Kubernetes client that the commands use; naming them here keeps the rest of it out of the bundle. */
export { CustomObjectsApi, KubeConfig } from '@kubernetes/client-node'
