/**
 * Finds and authenticates clients of both kinds, and extends the life of registrations that are in use.
 * Source: RFC 6749 sections 2.3 and 3.2.1, RFC 7591, client-id metadata documents.
 */
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { AuthServerConfig } from '../../config/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { usedClientMs } from '../storage/limits.ts'
import type { RegisteredClient } from '../model/records.ts'
import type { State } from '../storage/state.ts'
import type { ClientDocuments } from './client-documents.ts'
import { clientScopes } from '../model/scopes.ts'
import { sha256 } from '../model/identifiers.ts'

/** How a client authenticates in a request. */
export interface ClientCredentials {
  readonly id: string
  readonly secret: string | undefined
  readonly method: RegisteredClient['authMethod']
  /** True when the request has a Basic header, so that an error response needs a challenge. */
  readonly isBasic: boolean
}

export interface ClientDirectory {
  /**
   * Returns the client with the scopes that it may currently request, or undefined when it is unknown. Throws
   * OAuthError invalid_client when its document is rejected, and 503 when it cannot be fetched. The limits for `caller`
   * apply.
   */
  find(clientId: string, caller?: string): Promise<RegisteredClient | undefined>
  /** Returns the client that makes a token, revocation or introspection request. Throws OAuthError invalid_client. */
  authenticate(credentials: ClientCredentials): Promise<RegisteredClient>
  /** Marks a registered client as used, so that it outlives the first day. */
  renew(client: RegisteredClient): Promise<void>
}

const renewEveryMs = 3_600_000

export function makeClientDirectory(parts: {
  readonly state: State
  readonly documents: ClientDocuments | undefined
  readonly config: Pick<AuthServerConfig, 'scopesSupported' | 'baselineClientScopes'>
  readonly now: () => number
}): ClientDirectory {
  const { state, documents, config, now } = parts
  const renewed = new LRUCache<string, number>({ max: 10_000 })

  async function find(clientId: string, caller?: string): Promise<RegisteredClient | undefined> {
    if (documents?.accepts(clientId)) return documents.find(clientId, caller)
    const client = clientId.length > 128 ? undefined : await state.clients.get(clientId)
    // The configuration may have changed since the registration.
    return client && { ...client, scopes: clientScopes(client.scopes, config) }
  }

  async function authenticate(given: ClientCredentials): Promise<RegisteredClient> {
    if (documents?.accepts(given.id)) {
      // The grant contains the document's values, so its host need not be available for every refresh.
      if (given.method === 'none') return makeUnverifiedClient(given.id)
      throw clientAuthError(given)
    }
    const client = await find(given.id)
    // An unknown client, a wrong secret and a wrong method get the same response, which reveals nothing.
    if (!client || client.authMethod !== given.method || !matchesSecret(client, given.secret)) {
      throw clientAuthError(given)
    }
    return client
  }

  async function renew(client: RegisteredClient): Promise<void> {
    if (client.kind !== 'dcr') return
    const last = renewed.get(client.id)
    if (last !== undefined && now() - last < renewEveryMs) return
    renewed.set(client.id, now())
    if (client.used) {
      await state.clients.touch(client.id, usedClientMs)
      return
    }
    // Compared with the stored record, because a deleted registration must stay deleted.
    const seen = await state.clients.read(client.id)
    if (seen) await state.clients.swap(client.id, seen, { ...seen.value, used: true }, usedClientMs)
  }

  return { find, authenticate, renew }
}

/** Returns a client with only its id, because nothing else about it is verified. */
function makeUnverifiedClient(id: string): RegisteredClient {
  return {
    id,
    kind: 'cimd',
    redirectUris: [],
    grantTypes: [],
    scopes: [],
    authMethod: 'none',
    applicationType: 'native',
    issuedAtSec: 0,
    used: true,
  }
}

/** Returns the error for every failed authentication, with a challenge when the request has a Basic header. */
export function clientAuthError({ isBasic }: Pick<ClientCredentials, 'isBasic'>): OAuthError {
  const challenge = { 'WWW-Authenticate': 'Basic realm="token", charset="UTF-8"' }
  return new OAuthError(
    'invalid_client',
    'client authentication failed',
    isBasic ? { headers: challenge } : {},
  )
}

function matchesSecret(client: RegisteredClient, secret: string | undefined): boolean {
  if (client.authMethod === 'none') return secret === undefined
  if (client.secretHash === undefined || secret === undefined) return false
  return timingSafeEqual(Buffer.from(client.secretHash), Buffer.from(sha256(secret)))
}
