/** Paths, port and names in the pod of a virtual server. */
export const configDirectory = '/etc/vmcp-config'
export const configFile = 'config.yaml'
export const caBundleDirectory = '/etc/gatehouse/ca-bundles'
export const port = 4483
export const container = 'vmcp'
export const app = 'virtualmcpserver'

/** Returns the path of the PEM file with a backend's trust anchors. */
export function caBundlePath(backend: string, key: string): string {
  return `${caBundleDirectory}/${backend}/${key}`
}
