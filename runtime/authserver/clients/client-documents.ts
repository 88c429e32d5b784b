/**
 * Clients that are described by a metadata document at their own URL. The document is fetched on demand and cached.
 *
 * Any untrusted client can make this server fetch a document. The fetch is therefore guarded (public addresses only, no
 * redirects, a few kilobytes, a few seconds) and limited per host and caller. Simultaneous fetches are merged, and
 * failures are cached. The cache is an LRU with one fixed lifetime; Cache-Control is not read
 * (docs/reference/specification/external-auth.md). While a host is down or its limit is reached, a copy from the last
 * day may be used for a login.
 * Source: draft-ietf-oauth-client-id-metadata-document-02; MCP 2025-11-25;
 * docs/reference/specification/external-auth.md#cimd, cimd.
 */
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import type { AuthServerConfig, CimdSettings } from '../../config/index.ts'
import { isLoopbackHost, type Log } from '../../net/index.ts'
import { isClientDocumentUrl, isTransient, type JsonRecord, OAuthClientError } from '../../oauth/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { RegisteredClient } from '../model/records.ts'
import { selectDocumentAuth } from './auth-method.ts'
import type { AssertionKeys } from './client-key-sets.ts'
import { readClientMetadata } from './client-metadata.ts'

interface ClientDocumentParts {
  readonly config: AuthServerConfig
  readonly cimd: CimdSettings
  /** Fetches a document, applying all protections against untrusted addresses. */
  readonly fetchDocument: (url: string) => Promise<JsonRecord>
  /** True when the limits allow another fetch from this host for this network address. */
  readonly mayFetch: (host: string, caller: string | undefined) => Promise<boolean>
  readonly now: () => number
  readonly log: Log
}

const failureMs = 30_000
const staleMs = 24 * 3_600_000

/** A client and the keys that it authenticates with. A client without keys is public. */
interface DescribedClient {
  readonly client: RegisteredClient
  readonly keys: AssertionKeys | undefined
}

interface Cached extends DescribedClient {
  readonly fetchedAtMs: number
}

interface FailedFetch {
  readonly atMs: number
  /** The violated rule. Undefined for a failed fetch. The cause is not shown, because a client chose the address. */
  readonly reason: string | undefined
  readonly isTransient: boolean
}

export interface ClientDocuments {
  /** True for a client_id that only a document can describe. */
  accepts(clientId: string): boolean
  /**
   * Returns the client, or undefined when its document cannot be fetched. Throws OAuthError invalid_client with the
   * reason when the document breaks a rule, and 503 after too many fetches.
   */
  find(clientId: string, caller?: string): Promise<RegisteredClient | undefined>
  /**
   * Returns the client's keys; undefined when the client has no keys or its document is not accepted. Throws 503 when
   * the document's host does not respond, and after too many fetches.
   */
  findKeys(clientId: string, caller: string): Promise<AssertionKeys | undefined>
}

export function makeClientDocuments(parts: ClientDocumentParts): ClientDocuments {
  const { cimd, now } = parts
  const cache = new LRUCache<string, Cached>({ max: cimd.cacheMaxSize })
  const failed = new LRUCache<string, FailedFetch>({ max: Math.max(64, cimd.cacheMaxSize) })
  const running = new Map<string, Promise<DescribedClient | undefined>>()

  function accepts(clientId: string): boolean {
    if (clientId.length > 2048 || !isClientDocumentUrl(clientId)) return false
    const url = new URL(clientId)
    if (isLoopbackHost(url.hostname) && !cimd.allowLoopback) return false
    return cimd.allowedHosts === undefined || cimd.allowedHosts.includes(url.hostname)
  }

  function findStaleCopy(clientId: string): DescribedClient | undefined {
    const cached = cache.peek(clientId)
    return cached && now() - cached.fetchedAtMs < staleMs ? cached : undefined
  }

  async function fetchOnce(
    clientId: string,
    caller: string | undefined,
  ): Promise<DescribedClient | undefined> {
    const { host, hostname } = new URL(clientId)
    const stale = findStaleCopy(clientId)
    // All ports of a host share one limit. On this machine, each port has its own limit.
    if (!(await parts.mayFetch(isLoopbackHost(hostname) ? host : hostname, caller))) {
      if (stale) return stale
      throw new GatehouseError('AUTH_UNAVAILABLE', { headers: { 'retry-after': '10' } })
    }
    try {
      const described = parseDocument(clientId, await parts.fetchDocument(clientId), parts)
      cache.set(clientId, { ...described, fetchedAtMs: now() })
      failed.delete(clientId)
      return described
    } catch (error) {
      const failure = { atMs: now(), reason: describeViolation(error), isTransient: isTransient(error) }
      failed.set(clientId, failure)
      parts.log.info('rejected a client metadata document', {
        host,
        reason: error instanceof Error ? error.message : 'unknown',
      })
      // An old copy is used only while the host does not respond. An invalid document removes the copy from the cache.
      if (failure.isTransient) return stale
      cache.delete(clientId)
      return rejectDocument(failure)
    }
  }

  async function describe(
    clientId: string,
    caller: string | undefined,
  ): Promise<DescribedClient | undefined> {
    const known = cache.get(clientId)
    if (known && now() - known.fetchedAtMs < cimd.cacheTtlMs) return known
    const failure = failed.get(clientId)
    if (failure && now() - failure.atMs < failureMs) return findStaleCopy(clientId) ?? rejectDocument(failure)
    const pending = running.get(clientId)
    if (pending) return pending
    const mine = fetchOnce(clientId, caller).finally(() => running.delete(clientId))
    running.set(clientId, mine)
    return mine
  }

  async function findKeys(clientId: string, caller: string): Promise<AssertionKeys | undefined> {
    try {
      const described = await describe(clientId, caller)
      if (!described && failed.get(clientId)?.isTransient) throw new GatehouseError('AUTH_UNAVAILABLE')
      return described?.keys
    } catch (error) {
      // The endpoint's response does not name the violated rule, but the login's response does.
      if (error instanceof OAuthError && error.error === 'invalid_client') return undefined
      throw error
    }
  }

  const find: ClientDocuments['find'] = async (clientId, caller) => (await describe(clientId, caller))?.client
  return { accepts, find, findKeys }
}

/** Throws invalid_client with the reason. If there is no reason, returns undefined, as for an unknown client. */
function rejectDocument({ reason }: FailedFetch): undefined {
  if (reason !== undefined) throw new OAuthError('invalid_client', reason)
}

/** Returns the rule that a document violates, in fixed wording, or undefined when the fetch failed. */
function describeViolation(error: unknown): string | undefined {
  if (error instanceof OAuthError) return `the client metadata document is not accepted: ${error.message}`
  return error instanceof OAuthClientError && error.kind === 'protocol' ? error.message : undefined
}

function parseDocument(clientId: string, document: JsonRecord, parts: ClientDocumentParts): DescribedClient {
  if (typeof document['client_name'] !== 'string' || document['client_name'] === '') {
    throw new OAuthError('invalid_client_metadata', 'client_name is required')
  }
  if (Object.keys(document).some((member) => member.startsWith('client_secret'))) {
    throw new OAuthError('invalid_client_metadata', 'it must not contain a client secret')
  }
  const keys = selectDocumentAuth(clientId, document)
  const traits = readClientMetadata(document, parts.config, { isDocument: true, isConfidential: false })
  const declared = document['redirect_uris']
  if (Array.isArray(declared) && declared.length > traits.redirectUris.length) {
    parts.log.info('ignored private-use redirect URIs in a client metadata document', {
      host: new URL(clientId).host,
      ignored: declared.length - traits.redirectUris.length,
    })
  }
  const client: RegisteredClient = {
    ...traits,
    id: clientId,
    kind: 'cimd',
    authMethod: keys ? 'private_key_jwt' : 'none',
    issuedAtSec: Math.floor(parts.now() / 1000),
    used: true,
  }
  return { client, keys }
}
