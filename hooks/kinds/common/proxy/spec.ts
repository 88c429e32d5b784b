/**
 * What MCPServer and MCPRemoteProxy have in common: the references that shape the proxy in front.
 */
import type { MCPRemoteProxySpec, MCPServerSpec } from '../../../../schemas/index.ts'
import type { AnyContext } from '../../../sync/context.ts'

export type ProxySpec = Pick<
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
