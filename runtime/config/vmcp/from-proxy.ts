/**
 * Converts a proxy file to a virtual server file with one backend, for proxies that must inspect every message. The
 * features that require this are policies, tool filters, rate limits, audit, telemetry, webhooks and tool locks.
 *
 * Tools keep the backend's names (`priority` with one entry never renames a tool). Features that only the transparent
 * proxy supports (its own login, a stdio target) are rejected instead of ignored.
 * Source: `schemas/runtime/proxy.json`, `schemas/runtime/vmcp.json`.
 */
import {
  envName,
  GatehouseError,
  type input,
  type ProxyFile,
  type RuntimeToolLock,
} from '../../../schemas/index.ts'
import type { Environment } from '../proxy/env.ts'
import { readSecretFile } from '../common/secrets.ts'
import { type VmcpConfig, parseVmcpConfig, vmcpEnvironment } from './file.ts'

export interface VirtualServer {
  readonly config: VmcpConfig
  /** Environment, extended with secrets from files and with the headers for the backend. */
  readonly env: Environment
}

const clientSecretVariable = 'GATEHOUSE_PROXY_OIDC_CLIENT_SECRET'

/**
 * Returns the virtual server. Throws an INVALID_CONFIG error that lists all errors. `toolLocks` restricts the target to
 * approved tools.
 */
export function virtualServerOf(
  file: ProxyFile,
  env: Environment,
  toolLocks: readonly RuntimeToolLock[] = [],
): VirtualServer {
  const { targetUri } = file
  const violations = [
    ...(targetUri === undefined
      ? ['targetUri: is required with policies, filters, limits, audit, telemetry, webhooks and tool locks']
      : []),
    ...(file.remoteAuth?.enabled === true
      ? [
          'remoteAuth: cannot be combined with policies, filters, limits, audit, telemetry, webhooks and tool locks',
        ]
      : []),
  ]
  if (targetUri === undefined || violations.length > 0) {
    throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('\n') })
  }
  const oidc = file.oidc && oidcOf(file.oidc)
  const server: input.VmcpFile = {
    name: file.name,
    groupRef: file.name,
    incomingAuth: {
      type: oidc ? 'oidc' : 'anonymous',
      ...(oidc && { oidc }),
      ...(file.issuers && { issuers: file.issuers.map(issuerOf) }),
      ...(file.dpop && { dpop: file.dpop }),
      ...(file.authz && { authz: file.authz }),
    },
    outgoingAuth: { source: 'inline', ...(file.outgoingAuth && { default: file.outgoingAuth }) },
    aggregation: {
      conflictResolution: 'priority',
      conflictResolutionConfig: { priorityOrder: [file.name] },
      ...(file.tools && { tools: [{ workload: file.name, ...file.tools }] }),
    },
    backends: [
      {
        name: file.name,
        url: endpointOf(targetUri, file.transport),
        transport: file.transport,
        addresses: file.targetAddresses,
        ...(file.targetCaBundlePath !== undefined && {
          type: 'entry' as const,
          caBundlePath: file.targetCaBundlePath,
        }),
        ...file.targetTls,
      },
    ],
    ...(file.audit && { audit: file.audit }),
    ...(file.telemetry && { telemetry: file.telemetry }),
    ...(file.rateLimiting && { rateLimiting: file.rateLimiting }),
    ...(file.sessionStorage && { sessionStorage: file.sessionStorage }),
    ...(file.webhooks && { webhooks: file.webhooks }),
    ...(toolLocks.length > 0 && { pinning: { noLock: 'block' as const }, toolLocks }),
  }
  // Passes the file as JSON, which is YAML, to the regular reader for validation and defaults.
  return {
    config: parseVmcpConfig(JSON.stringify(server)),
    env: { ...env, ...additionalVariables(file, env) },
  }
}

/** Returns the endpoint. A target without a path uses the default path of its transport. */
function endpointOf(targetUri: string, transport: ProxyFile['transport']): string {
  const url = new URL(targetUri)
  if (url.pathname === '/') url.pathname = transport === 'sse' ? '/sse' : '/mcp'
  return url.href
}

function oidcOf(oidc: NonNullable<ProxyFile['oidc']>): input.RuntimeOidc {
  const { clientSecretFile, ...rest } = oidc
  const issuer = rest.issuer
  if (issuer === undefined) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: 'oidc.issuer: is required with policies, filters and limits',
    })
  }
  const audience = rest.audience ?? rest.resource ?? ''
  return {
    ...rest,
    issuer,
    audience,
    clientId: rest.clientId ?? audience,
    ...(clientSecretFile !== undefined && { clientSecretEnv: clientSecretVariable }),
  }
}

function issuerOf(issuer: NonNullable<ProxyFile['issuers']>[number], index: number): input.RuntimeIssuer {
  const { clientSecretFile, ...rest } = issuer
  return clientSecretFile === undefined ? rest : { ...rest, clientSecretEnv: issuerSecretVariable(index) }
}

function issuerSecretVariable(index: number): string {
  return `${clientSecretVariable}_${index + 1}`
}

/** Returns the variables that override members of a proxy's file. */
function additionalVariables(file: ProxyFile, env: Environment): Environment {
  const { headerForward, oidc } = file
  const secret = oidc?.clientSecretFile
  const own = `${vmcpEnvironment.headerForward}${envName(file.name)}`
  const issuerSecrets = (file.issuers ?? []).flatMap(({ clientSecretFile }, index) =>
    clientSecretFile === undefined
      ? []
      : [[issuerSecretVariable(index), readSecretFile(clientSecretFile).reveal()]],
  )
  return {
    ...Object.fromEntries(issuerSecrets),
    ...(secret !== undefined && { [clientSecretVariable]: readSecretFile(secret).reveal() }),
    ...(headerForward && env[own] === undefined && { [own]: JSON.stringify(headerForward) }),
  }
}
