/**
 * Names of generated objects, distinct between kinds and from one resource to another.
 *
 * Resource names may have dots and 253 characters, Services at most 63 and no dots: what does not fit gets a hash of the
 * whole name. Every kind has a prefix or suffix that no other kind can produce, so that an MCPServer, an MCPRemoteProxy
 * and a VirtualMCPServer of one name never claim the same object.
 */
import { hashOf, shortName } from '../../schemas/index.ts'

/** `<prefix><name><suffix>` as a DNS label. */
function label(prefix: string, name: string, suffix: string, max = 63): string {
  const plain = name.includes('.') ? hashed(name.replaceAll('.', '-'), name) : name
  return shortName(`${prefix}${plain}`, max - suffix.length) + suffix
}

/** 32 bits, as `shortName`: hooks/sync/conflicts.ts reports two resources that claim one object. */
function hashed(text: string, source: string): string {
  return `${text}-${hashOf(source).slice(0, 8)}`
}

/** A StatefulSet's name becomes part of a pod label together with an 11-character revision. */
const maxStatefulSet = 52

export interface ServerNames {
  /** Deployment, Service and service account of the proxy. */
  readonly proxy: string
  readonly proxyConfig: string
  /** StatefulSet, Service and service account of the server itself. */
  readonly server: string
  /** ConfigMap of the stdio bridge. */
  readonly serverConfig: string
  /** ConfigMap that a proxy which is attached to the server writes its report into. */
  readonly report: string
  readonly headless: string
}

/** Children of an MCPServer. */
export function serverNames(name: string): ServerNames {
  // `mcp-x-remote-proxy` is what an MCPRemoteProxy called x has.
  const own = name.endsWith('-remote') ? hashed(name, name) : name
  return {
    proxy: label('mcp-', own, '-proxy'),
    proxyConfig: label('mcp-', own, '-proxy-config'),
    server: label('mcp-', own, '-server', maxStatefulSet),
    serverConfig: label('mcp-', own, '-server-config'),
    report: label('mcp-', own, '-attach-status'),
    headless: label('mcp-', own, '-server-headless'),
  }
}

/** Children of an MCPRemoteProxy. */
export function remoteProxyNames(name: string): { readonly proxy: string; readonly proxyConfig: string } {
  return {
    proxy: label('mcp-', name, '-remote-proxy'),
    proxyConfig: label('mcp-', name, '-remote-proxy-config'),
  }
}

export interface VirtualServerNames {
  /** Deployment and Service. */
  readonly server: string
  /** Service account, Role and RoleBinding. */
  readonly account: string
  readonly config: string
  /** ConfigMap that the running server writes its report into. */
  readonly report: string
}

/** Children of a VirtualMCPServer. */
export function virtualServerNames(name: string): VirtualServerNames {
  return {
    server: label('vmcp-', name, ''),
    account: label('', name, '-vmcp'),
    config: label('', name, '-vmcp-config'),
    report: label('', name, '-vmcp-status'),
  }
}

/** Children of an EmbeddingServer. */
export function embeddingNames(name: string): { readonly server: string } {
  return { server: label('embedding-', name, '', maxStatefulSet) }
}

/** `http://<service>.<namespace>.svc.<domain>:<port>`. */
export function serviceUrl(service: string, namespace: string, clusterDomain: string, port: number): string {
  return `http://${service}.${namespace}.svc.${clusterDomain}:${port}`
}
