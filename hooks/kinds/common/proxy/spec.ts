/**
 * What MCPServer and MCPRemoteProxy share: the spec that shapes the proxy in front, and the paths in its pod.
 */
import type { MCPRemoteProxySpec, MCPServerSpec } from '../../../../schemas/index.ts'
import type { AnyContext } from '../../../sync/context.ts'

type ProxySpec = Pick<
  MCPServerSpec,
  | 'audit'
  | 'authServerRef'
  | 'authzConfig'
  | 'authzConfigRef'
  | 'autoscaling'
  | 'endpointPrefix'
  | 'exposure'
  | 'externalAuthConfigRef'
  | 'groupRef'
  | 'oidcConfigRef'
  | 'proxyPort'
  | 'rateLimiting'
  | 'replicas'
  | 'resourceOverrides'
  | 'sessionAffinity'
  | 'sessionStorage'
  | 'telemetryConfigRef'
  | 'tls'
  | 'toolConfigRef'
  | 'trustProxyHeaders'
  | 'webhookConfigRef'
> &
  Pick<MCPRemoteProxySpec, 'headerForward'>

/** The context of a kind with a proxy in front. */
export type ProxyContext = AnyContext & { readonly spec: ProxySpec }

/**
 * Where things are in the pod of a proxy.
 */
export const configDirectory = '/etc/gatehouse/proxy'
export const proxyFile = 'proxy.yaml'
export const proxyContainer = 'gatehouse'
