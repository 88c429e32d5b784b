/**
 * Where things are in the pod of a virtual server.
 */
export const configDirectory = '/etc/vmcp-config'
export const configFile = 'config.yaml'
export const caBundleDirectory = '/etc/gatehouse/ca-bundles'
export const port = 4483
export const container = 'vmcp'
export const app = 'virtualmcpserver'

/** PEM file with the trust anchors of one backend. */
export function caBundlePath(backend: string, key: string): string {
  return `${caBundleDirectory}/${backend}/${key}`
}
