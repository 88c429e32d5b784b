/**
 * Token exchange: a declared client exchanges a user's access token for a token that contains both the user and the
 * client (delegation). This server, or a trusted issuer that has a policy, issued the access token.
 *
 * The new token grants at most what the exchanged token and the client have in common, and never outlives the exchanged
 * token. `act` is built from authenticated clients and verified tokens, and never copied from a request.
 * Source: RFC 8693 sections 2, 4.1 and 4.4; RFC 8707.
 */
import { decodeJwt } from 'jose'
import { type TokenBinding, isConfirmed, readConfirmation } from '../../oauth/index.ts'
import type { AuthenticatedMachine } from '../clients/client-directory.ts'
import type { MachineClient } from '../clients/declared-clients.ts'
import type { ExchangePolicy } from '../clients/exchange/exchange-policies.ts'
import { readExternalSubject } from '../clients/exchange/external-subject.ts'
import { type AuthServerContext, canSignIn, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { issuerSubject, isMachineToken, machineSubject } from '../model/identifiers.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { parseScope, within } from '../model/scopes.ts'
import { claimsOfDelegation, delegationOf, type DelegationRoot } from '../tokens/delegated-tokens.ts'
import { signAccessToken, tokenType } from '../tokens/jwt.ts'
import { type AccessTokenClaims, verifyAccessToken } from '../tokens/verify-access-token.ts'
import { findResources } from './authorize.ts'
import type { Parameters } from './form.ts'
import type { ClientRequest, TokenResponse } from './token-request.ts'

export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
/** Our access tokens are JWTs, so both types describe them. */
const tokenTypes: ReadonlySet<string> = new Set([accessTokenType, 'urn:ietf:params:oauth:token-type:jwt'])

/** True when a declared client may exchange the tokens of users who sign in here, or the tokens of a trusted issuer. */
export function canExchangeTokens(context: AuthServerContext): boolean {
  const { config, declared, exchangePolicies } = context
  const hasSubjects = canSignIn(context) || exchangePolicies.all().length > 0
  return (
    config.tokenExchange !== undefined &&
    hasSubjects &&
    declared.all().some((client) => isDelegate(client, context))
  )
}

/** A workload is not a delegate, because `act` would contain only the client id that it shares with other workloads. */
function isDelegate(
  { id, subjectClients, spiffe }: MachineClient,
  { exchangePolicies }: Pick<AuthServerContext, 'exchangePolicies'>,
): boolean {
  return spiffe === undefined && (subjectClients.length > 0 || exchangePolicies.allows(id))
}

export async function exchangeToken(
  request: ClientRequest,
  context: AuthServerContext,
): Promise<TokenResponse> {
  const { form, client, binding } = request
  const { config, keys } = context
  const { tokenExchange } = config
  if (!tokenExchange || client.kind !== 'declared' || !isDelegate(client, context))
    throw new OAuthError('unauthorized_client', 'the client is not declared for token exchange')
  if ((form.get('requested_token_type') ?? accessTokenType) !== accessTokenType)
    throw new OAuthError('invalid_request', 'requested_token_type must be an access token')
  const subject = await readSubject({ ...request, client }, context)
  await checkActor({ ...request, client }, context)
  const actors = [client.id, ...subject.actors]
  if (actors.length > tokenExchange.maxDelegationDepth)
    throw rejected(client, 'the act chain would be too long')
  const scopes = readScopes(form, { subject, client })
  const audience = readResource(form, { subject, client }, context)
  const now = nowSec(context)
  const lifeSec = Math.min(Math.floor(tokenExchange.lifeMs / 1000), subject.exp - now)
  // The verifier accepts a token of another issuer for a moment after its expiry, because clocks differ.
  if (lifeSec <= 0) throw rejected(client, 'the subject token has expired')
  const token = await signAccessToken(keys(), {
    issuer: config.issuer,
    subject: subject.sub,
    clientId: client.id,
    authMethod: client.authMethod,
    scopes,
    audience: [audience],
    nowSec: now,
    lifeSec,
    binding,
    more: claimsOfDelegation(actors, subject.root),
  })
  return {
    body: {
      access_token: token,
      issued_token_type: accessTokenType,
      token_type: tokenType(binding),
      expires_in: lifeSec,
      scope: scopes.join(' '),
    },
    event: makeEvent('token_exchanged', {
      clientId: client.id,
      userId: subject.sub,
      ...(subject.root.kind === 'session' ? { sessionId: subject.root.tsid } : {}),
    }),
  }
}

/** A verified subject token of a user. */
interface Subject {
  readonly sub: string
  readonly root: DelegationRoot
  /** Clients that already act for the user, with the current client first. */
  readonly actors: readonly string[]
  readonly scopes: readonly string[]
  /** Resources of the token. Undefined for another issuer's token, whose audience is not a resource of this server. */
  readonly resources: readonly string[] | undefined
  readonly exp: number
}

interface MachineRequest extends Pick<ClientRequest, 'form' | 'binding' | 'certificate'> {
  readonly client: AuthenticatedMachine
}

interface Parties {
  readonly subject: Subject
  readonly client: AuthenticatedMachine
}

/** Throws OAuthError invalid_request (RFC 8693 section 2.2.2). The reason is in the audit log. */
async function readSubject(request: MachineRequest, context: AuthServerContext): Promise<Subject> {
  const policy = context.exchangePolicies.ofIssuer(unverifiedIssuer(request.form.get('subject_token')))
  return policy ? readForeignSubject(request, policy, context) : readOwnSubject(request, context)
}

/** The claim only selects the issuer. A token without a trusted issuer is checked as a token of this server. */
function unverifiedIssuer(token = ''): string {
  try {
    return decodeJwt(token).iss ?? ''
  } catch {
    return ''
  }
}

async function readOwnSubject(request: MachineRequest, context: AuthServerContext): Promise<Subject> {
  const { client } = request
  const claims = await verifyToken(request, 'subject_token', context)
  const { sub, client_id: holder, exp, scope, aud } = claims
  const delegation = isMachineToken(claims) ? undefined : delegationOf({ ...claims })
  if (!delegation) throw rejected(client, 'the subject token does not belong to a user')
  if (!context.declared.mayExchange(client.id, holder))
    throw rejected(client, 'the client may not exchange tokens that were issued to this client')
  const { clients: actors, root } = delegation
  return { sub, root, actors, scopes: parseScope(scope), resources: aud, exp }
}

async function readForeignSubject(
  request: MachineRequest,
  policy: ExchangePolicy,
  { config, issuerKeys, now }: AuthServerContext,
): Promise<Subject> {
  const { form, client } = request
  const token = requireToken(form, 'subject_token')
  const { id: clientId } = client
  const read = await issuerKeys.verify(policy.issuer, (keys) =>
    readExternalSubject(token, { policy, clientId, issuer: config.issuer, keys, now }),
  )
  if (read === undefined) throw rejected(client, "the issuer's keys cannot be read")
  if (typeof read === 'string') throw rejected(client, read)
  if (read.cnf !== undefined) requireProof(readConfirmation(read.cnf), request, 'subject_token')
  return {
    sub: issuerSubject(policy.issuerUrl, read.sub),
    root: {
      kind: 'external',
      policyId: policy.id,
      actor: read.actor === undefined ? undefined : { iss: policy.issuerUrl, sub: read.actor },
    },
    actors: [],
    scopes: read.scopes,
    resources: undefined,
    exp: read.expSec,
  }
}

/**
 * The client has already proved its identity. An actor token must therefore be the client's own token, and adds nothing
 * to the new token.
 */
async function checkActor(request: MachineRequest, context: AuthServerContext): Promise<void> {
  const { form, client } = request
  if (!form.has('actor_token')) {
    if (form.has('actor_token_type'))
      throw new OAuthError('invalid_request', 'actor_token_type requires actor_token')
    return
  }
  const { sub } = await verifyToken(request, 'actor_token', context)
  if (sub !== machineSubject(client.id))
    throw rejected(client, 'the actor token does not belong to the client')
}

type TokenName = 'subject_token' | 'actor_token'

/** Returns the claims of a live access token from this server. */
async function verifyToken(
  request: MachineRequest,
  name: TokenName,
  context: AuthServerContext,
): Promise<AccessTokenClaims> {
  const { form, client } = request
  const claims = await verifyAccessToken(requireToken(form, name), context)
  if (!claims) throw rejected(client, `the ${name} is not a valid access token from this server`)
  if (claims.cnf !== undefined) requireProof(claims.cnf, request, name)
  return claims
}

function requireToken(form: Parameters, name: TokenName): string {
  const token = form.require(name)
  if (!tokenTypes.has(form.require(`${name}_type`)))
    throw new OAuthError('invalid_request', `${name}_type must be an access token or a JWT`)
  return token
}

/** The request must prove possession of the key and the certificate that a token is bound to. */
function requireProof(
  cnf: TokenBinding | undefined,
  { client, binding: { jkt }, certificate }: MachineRequest,
  name: TokenName,
): void {
  if (cnf && isConfirmed(cnf, { jkt, x5t: certificate })) return
  throw rejected(client, `the ${name} is bound to a key or a certificate that the request does not prove`)
}

function rejected({ id: clientId }: AuthenticatedMachine, reason: string): OAuthError {
  const text = 'the token is invalid, expired, revoked, or not for this client'
  return new OAuthError('invalid_request', text, { rejection: { clientId, reason } })
}

/**
 * Returns the requested scopes. If no scope is requested, returns all scopes that the token and the client have in
 * common.
 */
function readScopes(form: Parameters, { subject, client }: Parties): readonly string[] {
  const allowed = subject.scopes.filter((scope) => client.scopes.includes(scope))
  const requested = parseScope(form.get('scope') ?? '')
  if (!within(requested, allowed) || allowed.length === 0)
    throw new OAuthError('invalid_scope', 'the scope exceeds the subject token or the declared scopes')
  return requested.length > 0 ? requested : allowed
}

/** Returns the resource of the new token, which the subject token and the client must have in common. */
function readResource(form: Parameters, { subject, client }: Parties, context: AuthServerContext): string {
  const { resources = client.resources } = subject
  const allowed = resources.filter((resource) => client.resources.includes(resource))
  const requested = findResources([...form.all('resource'), ...form.all('audience')], context)
  const [resource, ...others] = requested.length > 0 ? requested : allowed
  if (resource === undefined || others.length > 0 || !allowed.includes(resource))
    throw new OAuthError(
      'invalid_target',
      'the resource must belong to both the subject token and the client',
    )
  return resource
}
