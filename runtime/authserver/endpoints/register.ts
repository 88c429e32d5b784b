/**
 * Dynamic client registration, and management of the registration by the client itself.
 *
 * Registration is open to untrusted clients. The number of registrations is therefore limited per caller and in total,
 * and their size is bounded. An unused registration expires after a day, even if the client updates it. The response
 * contains the metadata that this server replaced (RFC 7591 section 3.2.1). Secrets and management tokens are stored as
 * hashes.
 * Source: RFC 7591, RFC 7592; docs/reference/specification/external-auth.md (baselineClientScopes).
 */
import { randomUUID, timingSafeEqual } from 'node:crypto'
import { isFields } from '../../../schemas/index.ts'
import type { Exchange } from '../../net/index.ts'
import type { JsonRecord } from '../../oauth/index.ts'
import { selectAuthMethod } from '../clients/auth-method.ts'
import { readClientMetadata } from '../clients/client-metadata.ts'
import { type AuthServerContext, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { randomId, sha256 } from '../model/identifiers.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { RegisteredClient } from '../model/records.ts'
import { limitRate, unusedClientMs, usedClientMs } from '../storage/limits.ts'
import type { SeenRecord } from '../storage/state.ts'
import { readBearerToken, readTyped } from './form.ts'
import { sendEmpty, sendPrivate } from './responses.ts'

/** POST /oauth/register. */
export async function registerClient(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const metadata = await readMetadata(exchange, context)
  const authMethod = selectAuthMethod(metadata, context.config.registration)
  const isConfidential = authMethod !== 'none'
  const secret = isConfidential ? randomId() : undefined
  const managementToken = `gh_reg_${randomId()}`
  const client: RegisteredClient = {
    ...readClientMetadata(metadata, context.config, { isDocument: false, isConfidential }),
    id: randomUUID(),
    kind: 'dcr',
    authMethod,
    managementHash: sha256(managementToken),
    issuedAtSec: nowSec(context),
    used: false,
    secretHash: secret === undefined ? undefined : sha256(secret),
  }
  checkSize(client)
  await context.state.clients.put(client.id, client, unusedClientMs)
  context.emit(makeEvent('client_registered', { clientId: client.id }))
  const body = {
    ...describeClient(client, managementToken, context),
    ...(secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
  }
  sendPrivate(exchange, body, { status: 201 })
}

/** GET, PUT, DELETE /oauth/register/{client_id} (RFC 7592). */
export async function manageClient(
  exchange: Exchange,
  clientId: string,
  context: AuthServerContext,
): Promise<void> {
  const token = readBearerToken(exchange)
  const seen = context.declared.get(clientId) ? undefined : await context.state.clients.read(clientId)
  // An unknown client and a wrong token get the same response (RFC 7592 section 2.1).
  if (!seen || token === undefined || !isManagementToken(seen.value, token)) {
    throw new OAuthError('invalid_token', 'the registration access token is not valid', {
      headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    })
  }
  switch (exchange.req.method) {
    case 'DELETE':
      await context.state.clients.delete(clientId)
      context.emit(makeEvent('client_deleted', { clientId }))
      return sendEmpty(exchange, 204)
    case 'PUT':
      return sendPrivate(
        exchange,
        describeClient(await updateClient(exchange, seen, context), token, context),
      )
    default:
      return sendPrivate(exchange, describeClient(seen.value, token, context))
  }
}

/** Replaces a client's metadata. The client keeps its authentication method (RFC 7592 section 2.2). */
async function updateClient(
  exchange: Exchange,
  seen: SeenRecord<RegisteredClient>,
  context: AuthServerContext,
): Promise<RegisteredClient> {
  const { id, kind, authMethod, secretHash, managementHash, issuedAtSec, used } = seen.value
  const metadata = await readMetadata(exchange, context)
  if (metadata['client_id'] !== id)
    throw new OAuthError('invalid_client_metadata', 'client_id must match the client')
  selectAuthMethod(metadata, context.config.registration)
  const rules = { isDocument: false, isConfidential: authMethod !== 'none' }
  const traits = readClientMetadata(metadata, context.config, rules)
  const next = { ...traits, id, kind, authMethod, secretHash, managementHash, issuedAtSec, used }
  checkSize(next)
  // Only actual use extends the lifetime of a registration. Otherwise, an untrusted client could keep any number of
  // them forever.
  if (!(await context.state.clients.swap(id, seen, next, used ? usedClientMs : undefined)))
    throw new OAuthError('temporarily_unavailable', 'another request changed the registration; try again')
  context.emit(makeEvent('client_updated', { clientId: id }))
  return next
}

function isManagementToken({ managementHash }: RegisteredClient, token: string): boolean {
  return (
    managementHash !== undefined && timingSafeEqual(Buffer.from(managementHash), Buffer.from(sha256(token)))
  )
}

/** Reads the JSON body within the caller's limits. Throws OAuthError invalid_client_metadata. */
async function readMetadata(exchange: Exchange, context: AuthServerContext): Promise<JsonRecord> {
  await limitRate(context.state.store, 'register', context.addressOf(exchange))
  const text = await readTyped(exchange, 'application/json')
  try {
    const body: unknown = JSON.parse(text ?? '')
    if (isFields(body)) return body
  } catch {
    // The code below rejects invalid JSON.
  }
  throw new OAuthError('invalid_client_metadata', 'the body must be a JSON object (application/json)')
}

const maxRecord = 16_384

function checkSize(client: RegisteredClient): void {
  if (JSON.stringify(client).length > maxRecord)
    throw new OAuthError('invalid_client_metadata', `the metadata is larger than ${maxRecord} characters`)
}

/** RFC 7591 section 3.2.1, RFC 7592 section 3. */
function describeClient(
  client: RegisteredClient,
  managementToken: string,
  { urls }: AuthServerContext,
): JsonRecord {
  return {
    client_id: client.id,
    client_id_issued_at: client.issuedAtSec,
    redirect_uris: client.redirectUris,
    token_endpoint_auth_method: client.authMethod,
    grant_types: client.grantTypes,
    response_types: ['code'],
    scope: client.scopes.join(' '),
    application_type: client.applicationType,
    client_name: client.name,
    client_uri: client.uri,
    software_id: client.softwareId,
    software_version: client.softwareVersion,
    registration_client_uri: `${urls.register}/${client.id}`,
    registration_access_token: managementToken,
  }
}
