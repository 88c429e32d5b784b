/** Proxy settings and pod paths that MCPServer and MCPRemoteProxy share. */
import type { MCPRemoteProxySpec, MCPServerSpec } from '../../../../schemas/index.ts'
import type { AnyContext } from '../../../sync/context.ts'

/** Fields of both kinds, plus fields that affect the proxy of only one kind. */
type ProxySpec = Pick<MCPServerSpec, (keyof MCPServerSpec & keyof MCPRemoteProxySpec) | 'rateLimiting'> &
  Pick<MCPRemoteProxySpec, 'headerForward'>

/** The context of a kind with a proxy in front. */
export type ProxyContext = AnyContext & { readonly spec: ProxySpec }

export const configDirectory = '/etc/gatehouse/proxy'
export const proxyFile = 'proxy.yaml'
export const proxyContainer = 'gatehouse'
