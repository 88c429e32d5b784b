/**
 * Assembles the proxy command from its settings: the dispatcher, the outgoing credential, the incoming authentication,
 * the server, and the login to the target. The login runs while the port is already open; requests get 503 until it is
 * complete.
 *
 * Source: docs/reference/specification/proxy-command.md, "What the service does".
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { type ProxySettings, stateKeys, vmcpEnvironment } from '../../config/index.ts'
import type { DpopParts, EmbeddedAuthServer } from '../../incoming/index.ts'
import {
  followTls,
  type Listener,
  type Log,
  makeDispatcher,
  type TlsMaterial,
  unbracket,
} from '../../net/index.ts'
import { maxMarks } from '../../oauth/index.ts'
import { makeEvents, openServingCertificate } from '../../observe/index.ts'
import { authServerViolations, strippedHeaders } from './auth-server.ts'
import { incomingFor } from './incoming-auth.ts'
import {
  authServerMetrics,
  certificateMetrics,
  makeProxyMetrics,
  secretUseMetrics,
  serveMetrics,
} from '../server/metrics.ts'
import { makeRemote } from './remote.ts'
import type { RunParts } from './run-parts.ts'
import { type RunningProxy, startProxy } from '../server/server.ts'
import { sessionsInStore } from '../session/session-store.ts'
import type { Store } from '../../store/index.ts'

export interface RunningCommand extends RunningProxy {
  /** Resolves when requests can be served; rejects when the login failed. */
  readonly ready: Promise<void>
}

/** Returns the client certificate for the target, and the trusted certificates. Throws INVALID_CONFIG. */
export function targetTls(
  { targetTls: files, remoteCa }: ProxySettings,
  log: Log,
): (() => TlsMaterial) | undefined {
  return files && followTls({ ...files, ca: remoteCa, insecureSkipVerify: false }, 'targetTls', log)
}

/** Binds and serves. Rejects with INVALID_CONFIG, or with the system's error when the address cannot be bound. */
export async function runProxy(config: ProxySettings, parts: RunParts): Promise<RunningCommand> {
  const { log, authServer } = parts
  if (authServer) checkAuthServer(config, authServer)
  for (const warning of config.warnings) log.warn(warning)
  if (!config.oidc && !parts.incoming && !parts.localTokens && !parts.quiet)
    log.warn('no --oidc-* flag set; every client that reaches this port may use the proxy')
  const host = await resolveHost(config.host)
  const shared = { ca: config.remoteCa, tls: targetTls(config, log), proxy: config.proxyEnvironment }
  const dispatcher = makeDispatcher({
    ...shared,
    origin: config.target.origin,
    ...(config.targetAddresses ? { guard: config.targetAddresses } : {}),
    operatorUrls: 'all',
  })
  const made = await makeRemote(config, parts, dispatcher)
  const store = await sharedStoreOf(config, parts)
  const sessions = parts.sessions ?? (store && sessionsInStore(store))
  const dpop = authServer?.dpop ?? (await proofStoreOf(config, parts, store))
  const certificate =
    config.tls && openServingCertificate(config.tls, (!parts.quiet && parts.events) || makeEvents())
  const metrics =
    config.metricsPort === undefined
      ? undefined
      : makeProxyMetrics(parts.version, moreMetrics(parts, certificate))
  const observe = metrics?.observe ?? parts.observe
  let proxy: RunningProxy
  let metricsListener: Listener | undefined
  async function release(): Promise<void> {
    certificate?.close()
    await metricsListener?.close({ graceMs: 0 })
    await made.close()
    await sessions?.close()
    await dispatcher.destroy()
  }
  try {
    if (metrics)
      metricsListener = await serveMetrics(metrics, { host, port: config.metricsPort ?? 0, certificate }, log)
    proxy = await startProxy({
      target: config.target,
      host,
      port: config.port,
      certificate,
      dispatcher,
      log,
      allowedOrigins: config.allowedOrigins,
      allowedHosts: parts.allowedHosts ?? publicHosts(config),
      incoming: parts.incoming ?? incomingFor(config, log, { authServer, dpop }),
      authServer,
      targetRequiresLogin: parts.targetRequiresLogin,
      strip: [
        ...(authServer?.config.disableUpstreamTokenInjection ? strippedHeaders : []),
        // Drops the client's proof. Otherwise, the target could replay the proof.
        ...(config.oidc || parts.incoming ? ['dpop'] : []),
      ],
      credential: made.credential,
      login: made.login,
      inject: config.inject,
      // An exchanged token replaces the client's token, regardless of the header that contains the client's token.
      passAuthorization:
        config.exchange === undefined && (config.passAuthorization || (!config.oidc && !parts.incoming)),
      headersTimeoutMs: config.requestTimeoutMs,
      stateless: config.stateless,
      endpointPrefix: config.endpointPrefix,
      trustForwardedPrefix: config.trustProxyHeaders,
      identifyCallers: config.identifyCallers,
      ...(parts.maxBodyBytes === undefined ? {} : { maxBodyBytes: parts.maxBodyBytes }),
      ...(sessions ? { sessions: { shared: sessions } } : {}),
      ...(observe ? { observe } : {}),
      connections: parts.connections,
      localTokens: parts.localTokens,
    })
  } catch (error) {
    await release()
    throw error
  }
  certificate?.checkFiles()
  return {
    url: proxy.url,
    port: proxy.port,
    ready: made.start(),
    async close(options) {
      await proxy.close(options)
      await release()
    },
  }
}

function checkAuthServer(config: ProxySettings, { config: server }: EmbeddedAuthServer): void {
  const problems = authServerViolations(config, server)
  if (problems.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: problems.join('\n') })
}

/**
 * Returns an IP address unchanged. For a name, returns its first IPv4 address or, if it has none, its first address.
 * Throws INVALID_CONFIG for a name without addresses.
 */
export async function resolveHost(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  try {
    const addresses = await lookup(host, { all: true })
    const found = addresses.find(({ family }) => family === 4) ?? addresses[0]
    if (found) return found.address
  } catch {
    // The code below reports the error.
  }
  throw new GatehouseError('INVALID_CONFIG', { detail: `invalid host: ${host}` })
}

function publicHosts({ resourceUrl }: ProxySettings): ReadonlySet<string> {
  return new Set(resourceUrl === undefined ? [] : [unbracket(new URL(resourceUrl).hostname).toLowerCase()])
}

/** Returns the metrics for the embedded authorization server and for the served certificate. */
function moreMetrics(
  { authServer, events }: RunParts,
  certificate: ServedCertificate | undefined,
): () => string {
  const counted = events && authServer ? authServerMetrics(events) : () => ''
  return () => secretUseMetrics(authServer?.secretUses()) + counted() + certificateMetrics(certificate)
}

/** Returns the store that marks DPoP proofs as used; undefined if no proofs are accepted. */
async function proofStoreOf(
  { dpop }: ProxySettings,
  { proofs }: RunParts,
  shared: Store | undefined,
): Promise<DpopParts | undefined> {
  if (dpop === undefined || dpop.mode === 'off') return undefined
  if (shared) return { store: shared.namespace('dpop:') }
  const { makeMemoryStore } = await import('../../store/index.ts')
  return { store: proofs ?? makeMemoryStore({ maxEntries: maxMarks }) }
}

/** Opens the store that replicas share, if configured. */
async function sharedStoreOf(
  { sessionStorage, name }: ProxySettings,
  { secret, log }: RunParts,
): Promise<Store | undefined> {
  if (sessionStorage?.provider !== 'redis') return undefined
  // Load the store on demand, because its client is large and most proxies do not use it.
  const { makeRedisStore, sealStore } = await import('../../store/index.ts')
  const { address, db, keyPrefix } = sessionStorage
  const password = secret?.(vmcpEnvironment.redisPassword)
  const keys = stateKeys((name) => secret?.(name)).map((key) => Buffer.from(key))
  const store = makeRedisStore({
    ...(address === undefined ? {} : { addr: address }),
    db,
    keyPrefix: (keyPrefix || `gatehouse:proxy:${encodeURIComponent(name)}`).replace(/:?$/, ':'),
    ...(password ? { password } : {}),
  })
  if (keys.length === 0)
    log.warn('session storage has no key; values are stored in plaintext', {
      variable: vmcpEnvironment.stateKey,
    })
  return keys.length > 0 ? sealStore(store, () => keys) : store
}
