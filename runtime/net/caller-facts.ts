/**
 * Derives from an access token's claims whether a user or a machine presented it, which client received it, and which
 * actor acts for the user.
 *
 * Source: RFC 9068 sections 2.2 and 5 (the subject of a machine is its client); RFC 8693 section 4.1.
 */
import { issuerPrefix } from '../../schemas/index.ts'
import type { CallerFacts } from './caller.ts'

type Claims = Readonly<Record<string, unknown>>

/** The issuer of a token: the embedded authorization server, or another issuer. */
export type TokenOrigin = 'embedded' | 'external'

/** Claims that identify the client: RFC 9068, OpenID Connect, Okta, Entra ID (version 1). */
const clientClaims = ['client_id', 'azp', 'cid', 'appid'] as const

/** Subject prefix that the embedded authorization server uses for declared clients. */
export const clientSubject = 'client:'
/** Client id prefix that the embedded authorization server uses for subjects of trusted issuers (grant jwt-bearer). */
export const assertionClient = 'jwt-bearer:'
/** Subject prefix of workloads that authenticate with a JWT-SVID at the embedded authorization server. */
export const workloadSubject = 'spiffe://'
/** Claims that the embedded authorization server adds to tokens for users of other issuers (ID-JAG, token exchange). */
const foreignUserClaims = ['binding_id', 'exchange_policy']
const serviceAccountSubject = /^system:serviceaccount:[^:]+:[^:]+$/

/** Reads the claims as the issuer wrote them. Without an origin, for example in a policy test, both rules apply. */
export function callerFacts(claims: Claims, origin?: TokenOrigin): CallerFacts {
  const clientId = clientClaims.map((name) => textOf(claims, name)).find((id) => id !== undefined)
  const isMachine =
    (origin !== 'external' && isEmbeddedMachine(claims)) ||
    (origin !== 'embedded' && isExternalMachine(claims, clientId))
  return {
    kind: isMachine ? 'machine' : 'user',
    clientId,
    // Ignores the claim in tokens from other issuers, which could let their users choose the claim's value.
    authMethod: origin === 'external' ? undefined : textOf(claims, 'auth_method'),
    ...actorFact(claims, origin),
    // A user of another issuer has no session on this server, even when a client acts for the user with a token from
    // this server.
    hasUpstreams: origin !== 'external' && !isMachine && !isForeignUser(claims),
  }
}

/**
 * Returns only the outermost actor, because earlier actors are informational. An actor without a usable subject is
 * still an actor. For other issuers, the actor includes the issuer, because such an issuer could choose the subject of
 * a declared client.
 */
function actorFact(claims: Claims, origin: TokenOrigin | undefined): { readonly actor?: string } {
  const { act } = claims
  if (act === undefined || act === null) return {}
  const sub = isRecord(act) ? (textOf(act, 'sub') ?? '') : ''
  const isDeclared = origin === 'embedded' || (origin === undefined && sub.startsWith(clientSubject))
  return { actor: isDeclared ? sub : `${issuerPrefix(textOf(claims, 'iss'))}${sub}` }
}

function isRecord(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** True for a token from the embedded authorization server for a user of another issuer. */
function isForeignUser(claims: Claims): boolean {
  return foreignUserClaims.some((name) => Object.hasOwn(claims, name))
}

/** True for a machine's own token from the embedded authorization server, which has no session. */
function isEmbeddedMachine(claims: Claims): boolean {
  const clientId = textOf(claims, 'client_id')
  if (clientId === undefined || Object.hasOwn(claims, 'tsid') || isForeignUser(claims)) return false
  const sub = textOf(claims, 'sub') ?? ''
  return (
    [clientSubject, workloadSubject].some((prefix) => sub.startsWith(prefix)) ||
    clientId.startsWith(assertionClient)
  )
}

/** True for a client that is its own subject, and for the ServiceAccount of a pod. */
function isExternalMachine(claims: Claims, clientId: string | undefined): boolean {
  const sub = textOf(claims, 'sub')
  if (sub === undefined) return false
  return (
    sub === clientId ||
    // Entra ID and Auth0 use other subjects for clients.
    claims['idtyp'] === 'app' ||
    claims['gty'] === 'client-credentials' ||
    (serviceAccountSubject.test(sub) && typeof claims['kubernetes.io'] === 'object')
  )
}

function textOf(claims: Claims, name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}

/**
 * Returns a client id for logs and pages. The id of a client with a metadata document is a URL, which this function
 * shortens to the host.
 */
export function shortClientId(clientId: string): string {
  return clientId.includes('://') && URL.canParse(clientId) ? new URL(clientId).host : clientId.slice(0, 64)
}
