/**
 * Where things are in the pod of a proxy.
 */
export const configDirectory = '/etc/gatehouse/proxy'
export const proxyFile = 'proxy.yaml'
export const proxyContainer = 'gatehouse'
