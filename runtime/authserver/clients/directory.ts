/**
 * Finds and authenticates clients, wherever they come from, and keeps registered ones alive while they are used.
 *
 * Does not register (endpoints/register.ts) and does not decide what a client may do.
 * Source: RFC 6749 sections 2.3 and 3.2.1, RFC 7591, client-id metadata documents.
 */
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { AuthServerConfig } from '../../config/index.ts'
import type { Exchange } from '../../net/index.ts'
import { basicCredentials, type Parameters } from '../endpoints/form.ts'
import { OAuthError } from '../endpoints/oauth-error.ts'
import { usedClientMs } from '../limits.ts'
import type { RegisteredClient } from '../storage/records.ts'
import type { State } from '../storage/state.ts'
import { hashed } from '../tokens/opaque.ts'
import type { ClientDocuments } from './cimd.ts'
import { clientScopes } from './scopes.ts'

export interface ClientDirectory {
  /**
   * Returns the client with the scopes that it may request now, or undefined when it is unknown. Throws OAuthError
   * invalid_client when its document is refused, and 503 when it cannot be fetched now. The limits of `caller`
   * apply.
   */
  find(clientId: string, caller?: string): Promise<RegisteredClient | undefined>
  /** The client that makes a token, revocation or introspection request. Throws OAuthError invalid_client. */
  authenticate(exchange: Exchange, parameters: Parameters): Promise<RegisteredClient>
  /** Marks a registered client as used, so that it outlives the first day. */
  renew(client: RegisteredClient): Promise<void>
}

const renewEveryMs = 3_600_000

export function makeClientDirectory(
  state: State,
  documents: ClientDocuments | undefined,
  config: Pick<AuthServerConfig, 'scopesSupported' | 'baselineClientScopes'>,
  now: () => number,
): ClientDirectory {
  const renewed = new LRUCache<string, number>({ max: 10_000 })

  async function find(clientId: string, caller?: string): Promise<RegisteredClient | undefined> {
    if (documents?.accepts(clientId)) return documents.find(clientId, caller)
    const client = clientId.length > 128 ? undefined : await state.clients.get(clientId)
    // The configuration may have changed since the registration.
    return client && { ...client, scopes: clientScopes(client.scopes, config) }
  }

  async function authenticate(exchange: Exchange, parameters: Parameters): Promise<RegisteredClient> {
    const given = credentials(exchange, parameters)
    if (documents?.accepts(given.id)) {
      // The grant contains the values of the document, so its host need not be available for every refresh.
      if (given.method === 'none') return describedElsewhere(given.id)
      throw invalidClient({ basic: given.basic })
    }
    const client = await find(given.id)
    // One response for an unknown client, a wrong secret and a wrong method: nothing to learn from it.
    if (!client || client.authMethod !== given.method || !secretFits(client, given.secret)) {
      throw invalidClient({ basic: given.basic })
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
    // Against what is there now: a registration that was deleted meanwhile must stay deleted.
    const seen = await state.clients.read(client.id)
    if (seen) await state.clients.swap(client.id, seen, { ...seen.value, used: true }, usedClientMs)
  }

  return { find, authenticate, renew }
}

/** A client that proved nothing but its name, which is all that its kind can prove. */
function describedElsewhere(id: string): RegisteredClient {
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

interface Given {
  readonly id: string
  readonly secret: string | undefined
  readonly method: RegisteredClient['authMethod']
  readonly basic: boolean
}

function credentials(exchange: Exchange, parameters: Parameters): Given {
  const header = exchange.req.headers.authorization
  const bodyId = parameters.get('client_id')
  const bodySecret = parameters.get('client_secret')
  if (header !== undefined && /^basic\b/i.test(header)) {
    const pair = basicCredentials(header)
    if (!pair) throw invalidClient({ basic: true })
    if (bodySecret !== undefined || (bodyId !== undefined && bodyId !== pair.id)) {
      throw new OAuthError('invalid_request', 'the client must use one way to authenticate')
    }
    return { id: pair.id, secret: pair.secret, method: 'client_secret_basic', basic: true }
  }
  if (parameters.has('client_assertion') || parameters.has('client_assertion_type'))
    throw invalidClient({ basic: false })
  if (bodyId === undefined) throw invalidClient({ basic: false })
  const method = bodySecret === undefined ? 'none' : 'client_secret_post'
  return { id: bodyId, secret: bodySecret, method, basic: false }
}

function invalidClient({ basic }: { readonly basic: boolean }): OAuthError {
  const challenge = { 'WWW-Authenticate': 'Basic realm="token", charset="UTF-8"' }
  return new OAuthError('invalid_client', 'client authentication failed', basic ? { headers: challenge } : {})
}

function secretFits(client: RegisteredClient, secret: string | undefined): boolean {
  if (client.authMethod === 'none') return secret === undefined
  if (client.secretHash === undefined || secret === undefined) return false
  return timingSafeEqual(Buffer.from(client.secretHash), Buffer.from(hashed(secret)))
}
