/**
 * Names of generated objects, unique across kinds and resources.
 *
 * A resource name may contain dots and may have up to 253 characters. A Service name must not contain dots and has at
 * most 63 characters. Gatehouse rewrites a name that does not fit, and appends a hash of the full name. Each kind has
 * its own prefix or suffix, so an MCPServer, an MCPRemoteProxy and a VirtualMCPServer with the same name never claim
 * the same object.
 */
import { hashOf, shortName } from '../../schemas/index.ts'

/** Returns `<prefix><name><suffix>` as a DNS label. */
function label(prefix: string, name: string, suffix: string, max = 63): string {
  const plain = name.includes('.') ? withHash(name.replaceAll('.', '-'), name) : name
  return shortName(`${prefix}${plain}`, max - suffix.length) + suffix
}

/**
 * Appends 32 bits of a hash, as `shortName` does. hooks/sync/conflicts.ts reports two resources that claim one object.
 */
function withHash(text: string, source: string): string {
  return `${text}-${hashOf(source).slice(0, 8)}`
}

/** Kubernetes appends an 11-character revision to a StatefulSet's name to form a pod label. */
const maxStatefulSet = 52

export interface ServerNames {
  /** The proxy's Deployment, Service and service account. */
  readonly proxy: string
  readonly proxyConfig: string
  /** The StatefulSet, Service and service account of the server itself. */
  readonly server: string
  /** The stdio bridge's ConfigMap. */
  readonly serverConfig: string
  /** The ConfigMap that an attached proxy writes its report to. */
  readonly report: string
  readonly headless: string
}

/** Returns the names of an MCPServer's children. */
export function serverNames(name: string): ServerNames {
  // An MCPRemoteProxy named x owns `mcp-x-remote-proxy`.
  const own = name.endsWith('-remote') ? withHash(name, name) : name
  return {
    proxy: label('mcp-', own, '-proxy'),
    proxyConfig: label('mcp-', own, '-proxy-config'),
    server: label('mcp-', own, '-server', maxStatefulSet),
    serverConfig: label('mcp-', own, '-server-config'),
    report: label('mcp-', own, '-attach-status'),
    headless: label('mcp-', own, '-server-headless'),
  }
}

/** Returns the names of an MCPRemoteProxy's children. */
export function remoteProxyNames(name: string): { readonly proxy: string; readonly proxyConfig: string } {
  return {
    proxy: label('mcp-', name, '-remote-proxy'),
    proxyConfig: label('mcp-', name, '-remote-proxy-config'),
  }
}

export interface VirtualServerNames {
  /** Deployment and Service. */
  readonly server: string
  /** The service account, Role and RoleBinding. */
  readonly account: string
  readonly config: string
  /** The ConfigMap that the running server writes its report to. */
  readonly report: string
}

/** Returns the names of a VirtualMCPServer's children. */
export function virtualServerNames(name: string): VirtualServerNames {
  return {
    server: label('vmcp-', name, ''),
    account: label('', name, '-vmcp'),
    config: label('', name, '-vmcp-config'),
    report: label('', name, '-vmcp-status'),
  }
}

/** Returns the names of an EmbeddingServer's children. */
export function embeddingNames(name: string): { readonly server: string } {
  return { server: label('embedding-', name, '', maxStatefulSet) }
}

/** Returns the names of an MCPCatalogue's children: the Deployment, Service and service account, and the ConfigMap. */
export function catalogueNames(name: string): { readonly server: string; readonly config: string } {
  return { server: label('mcp-', name, '-catalogue'), config: label('mcp-', name, '-catalogue-config') }
}

/** Returns `http://<service>.<namespace>.svc.<domain>:<port>`. */
export function serviceUrl(service: string, namespace: string, clusterDomain: string, port: number): string {
  return `http://${service}.${namespace}.svc.${clusterDomain}:${port}`
}
