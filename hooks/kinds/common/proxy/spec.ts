/** What MCPServer and MCPRemoteProxy share: the settings of the proxy in front, and the paths in its pod. */
import type { MCPRemoteProxySpec, MCPServerSpec } from '../../../../schemas/index.ts'
import type { AnyContext } from '../../../sync/context.ts'

/** Fields that both kinds have, and fields that shape the proxy of only one kind. */
type ProxySpec = Pick<MCPServerSpec, (keyof MCPServerSpec & keyof MCPRemoteProxySpec) | 'rateLimiting'> &
  Pick<MCPRemoteProxySpec, 'headerForward'>

/** The context of a kind with a proxy in front. */
export type ProxyContext = AnyContext & { readonly spec: ProxySpec }

export const configDirectory = '/etc/gatehouse/proxy'
export const proxyFile = 'proxy.yaml'
export const proxyContainer = 'gatehouse'
