/**
 * Dynamic client registration, and its management by the client itself.
 *
 * Open to untrusted clients, therefore limited per caller and in total, capped in size, and forgotten after a day without use,
 * whatever was updated meanwhile.
 * The response contains the metadata that this server replaced (RFC 7591 section 3.2.1). Secrets and management tokens are
 * stored as hashes only.
 * Source: RFC 7591, RFC 7592; docs/specification/external-auth.md (baselineClientScopes).
 */
import { isFields } from '../../../schemas/index.ts'
import { randomUUID, timingSafeEqual } from 'node:crypto'
import { type Exchange, readBody } from '../../net/index.ts'
import type { JsonRecord } from '../../oauth/index.ts'
import { selectAuthMethod } from '../clients/auth-method.ts'
import { type ClientTraits, readClientMetadata } from '../clients/client-metadata.ts'
import type { AuthServerContext } from '../login/context.ts'
import { nowSec } from '../login/context.ts'
import { limit, unusedClientMs, usedClientMs } from '../storage/limits.ts'
import type { RegisteredClient } from '../model/records.ts'
import { sendEmpty, sendPrivate } from './responses.ts'
import { bearerToken, maxBodyBytes } from './form.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { sha256, randomId } from '../model/identifiers.ts'

const maxRecord = 16_384

/** POST /oauth/register. */
export async function register(exchange: Exchange, context: AuthServerContext): Promise<void> {
  await limit(context.state.store, 'register', context.addressOf(exchange))
  const metadata = await readMetadata(exchange)
  const authMethod = selectAuthMethod(metadata, context.config.registration)
  const rules = { isDocument: false, isConfidential: authMethod !== 'none' }
  const traits = readClientMetadata(metadata, context.config, rules)
  const secret = authMethod === 'none' ? undefined : randomId()
  const management = `gh_reg_${randomId()}`
  const client: RegisteredClient = {
    ...traits,
    id: randomUUID(),
    kind: 'dcr',
    authMethod,
    managementHash: sha256(management),
    issuedAtSec: nowSec(context),
    used: false,
    ...(secret === undefined ? {} : { secretHash: sha256(secret) }),
  }
  checkSize(client)
  await context.state.clients.put(client.id, client, unusedClientMs)
  emit(context, 'client_registered', client)
  sendPrivate(exchange, 201, {
    ...describe(client, context, management),
    ...(secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
  })
}

/** GET, PUT, DELETE /oauth/register/{client_id} (RFC 7592). */
export async function manage(
  exchange: Exchange,
  clientId: string,
  context: AuthServerContext,
): Promise<void> {
  const presented = bearerToken(exchange)
  const seen = await context.state.clients.read(clientId)
  // A client that does not exist and a wrong token look the same (RFC 7592 section 2.1).
  if (!seen || presented === undefined || !fits(seen.value, presented)) {
    throw new OAuthError('invalid_token', 'the registration access token is not valid', {
      headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    })
  }
  const client = seen.value
  if (exchange.req.method === 'DELETE') {
    await context.state.clients.delete(clientId)
    emit(context, 'client_deleted', client)
    sendEmpty(exchange, 204)
    return
  }
  if (exchange.req.method !== 'PUT') {
    sendPrivate(exchange, 200, describe(client, context, presented))
    return
  }
  await limit(context.state.store, 'register', context.addressOf(exchange))
  const metadata = await readMetadata(exchange)
  if (metadata['client_id'] !== clientId) {
    throw new OAuthError('invalid_client_metadata', 'client_id must be that of the client')
  }
  selectAuthMethod(metadata, context.config.registration)
  // An update keeps the authentication of the client.
  const rules = { isDocument: false, isConfidential: client.authMethod !== 'none' }
  const traits = readClientMetadata(metadata, context.config, rules)
  const next = { ...fixedMembers(client), ...traits }
  checkSize(next)
  // Only use prolongs a registration: else an untrusted client could keep any number of them for ever.
  const lifeMs = client.used ? usedClientMs : undefined
  if (!(await context.state.clients.swap(clientId, seen, next, lifeMs))) {
    throw new OAuthError('temporarily_unavailable', 'the registration was changed meanwhile; try again')
  }
  emit(context, 'client_updated', next)
  sendPrivate(exchange, 200, describe(next, context, presented))
}

/** What an update does not touch; an update replaces everything else (RFC 7592 section 2.2). */
function fixedMembers(client: RegisteredClient): Omit<RegisteredClient, keyof ClientTraits> {
  const { id, kind, authMethod, secretHash, managementHash, issuedAtSec, used } = client
  return {
    id,
    kind,
    authMethod,
    issuedAtSec,
    used,
    ...(secretHash === undefined ? {} : { secretHash }),
    ...(managementHash === undefined ? {} : { managementHash }),
  }
}

function fits(client: RegisteredClient, presented: string): boolean {
  if (client.managementHash === undefined) return false
  return timingSafeEqual(Buffer.from(client.managementHash), Buffer.from(sha256(presented)))
}

async function readMetadata(exchange: Exchange): Promise<JsonRecord> {
  await readBody(exchange, { maxBytes: maxBodyBytes })
  const type = exchange.req.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  const refusal = new OAuthError(
    'invalid_client_metadata',
    'the body must be a JSON object (application/json)',
  )
  if (type !== 'application/json') throw refusal
  try {
    const body: unknown = JSON.parse(exchange.body.toString('utf8'))
    if (isFields(body)) return body
  } catch {
    // Falls through to the one refusal.
  }
  throw refusal
}

function checkSize(client: RegisteredClient): void {
  if (JSON.stringify(client).length > maxRecord) {
    throw new OAuthError('invalid_client_metadata', `the metadata is larger than ${maxRecord} characters`)
  }
}

/** RFC 7591 section 3.2.1, RFC 7592 section 3. */
function describe(
  client: RegisteredClient,
  context: AuthServerContext,
  management: string,
): Record<string, unknown> {
  return {
    client_id: client.id,
    client_id_issued_at: client.issuedAtSec,
    redirect_uris: client.redirectUris,
    token_endpoint_auth_method: client.authMethod,
    grant_types: client.grantTypes,
    response_types: ['code'],
    scope: client.scopes.join(' '),
    application_type: client.applicationType,
    ...(client.name === undefined ? {} : { client_name: client.name }),
    ...(client.uri === undefined ? {} : { client_uri: client.uri }),
    ...(client.softwareId === undefined ? {} : { software_id: client.softwareId }),
    ...(client.softwareVersion === undefined ? {} : { software_version: client.softwareVersion }),
    registration_client_uri: `${context.urls.register}/${client.id}`,
    registration_access_token: management,
  }
}

function emit(
  context: AuthServerContext,
  type: 'client_registered' | 'client_updated' | 'client_deleted',
  client: RegisteredClient,
): void {
  context.emit({ type, outcome: 'success', clientId: client.id })
}
