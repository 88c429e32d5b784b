/**
 * The shapes of the stored records. Every record is JSON and is sealed at rest (runtime/store).
 *
 * A *request* waits for consent, an *upstream step* for one upstream login, a *code* for its redemption. A *session*
 * contains what one user granted to one client. A session's *grants* are the logins that belong to it, each the root of
 * one refresh family. A session's upstream rows contain the providers' tokens. A grant that its session does not list
 * has ended.
 */
import { count, flag, list, maybe, type Of, oneOf, record, text } from './codec.ts'

/** A client: registered (dcr), or described by its metadata document (cimd). */
export const client = record({
  id: text,
  kind: oneOf('dcr', 'cimd'),
  name: maybe(text),
  uri: maybe(text),
  redirectUris: list(text),
  grantTypes: list(text),
  scopes: list(text),
  authMethod: oneOf('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'),
  /** SHA-256 of the secret. */
  secretHash: maybe(text),
  /** SHA-256 of the registration access token (RFC 7592). */
  managementHash: maybe(text),
  applicationType: oneOf('native', 'web'),
  softwareId: maybe(text),
  softwareVersion: maybe(text),
  issuedAtSec: count,
  /** True once the first token has been issued. An unused registration expires after a day. */
  used: flag,
})
export type RegisteredClient = NonNullable<ReturnType<typeof client>>
export type TokenAuthMethod = RegisteredClient['authMethod']
/**
 * Method with which a declared client authenticated. `federated`: with the token of a trusted issuer; `spiffe_jwt`:
 * with a JWT-SVID.
 */
export type MachineAuthMethod = TokenAuthMethod | 'federated' | 'spiffe_jwt'

const requestMembers = {
  clientId: text,
  clientKind: oneOf('dcr', 'cimd'),
  clientName: maybe(text),
  redirectUri: text,
  /** True when the client sent redirect_uri. The token request must then repeat the redirect URI. */
  redirectGiven: flag,
  state: maybe(text),
  codeChallenge: text,
  scopes: list(text),
  resources: list(text),
  refreshable: flag,
  nonce: maybe(text),
  prompt: list(text),
  loginHint: maybe(text),
  maxAgeSec: maybe(count),
  /** Thumbprint of the key whose possession the client must prove to redeem the code (dpop_jkt). */
  codeJkt: maybe(text),
}
/** A validated authorization request. */
export const request = record(requestMembers)
export type AuthRequest = Of<typeof requestMembers>

const upstreamTokenMembers = {
  provider: text,
  /** The user's subject at the provider. */
  subject: text,
  accessToken: text,
  refreshToken: maybe(text),
  idToken: maybe(text),
  scope: maybe(text),
  expiresAtMs: maybe(count),
  obtainedAtMs: count,
}
const upstreamTokens = record(upstreamTokenMembers)
export type UpstreamTokensRecord = Of<typeof upstreamTokenMembers>

const user = record({
  userId: text,
  name: maybe(text),
  email: maybe(text),
  authTimeSec: count,
})
export type User = NonNullable<ReturnType<typeof user>>

const loginMembers = {
  request,
  /** Providers that the user agreed to, in order. */
  chosen: list(text),
  /** Hash of the browser binding that must be presented at the callback. */
  browser: text,
  /** User whose remembered consent let this login skip the page. Absent when the page was shown. */
  consentOf: maybe(text),
  /** Time at which the user gave consent on the page. Absent when the page was skipped. */
  approvedAtMs: maybe(count),
  /** Providers that the user's groups select. Absent: all providers, or the user is not identified yet. */
  offered: maybe(list(text)),
  /** Tokens of the finished upstream steps. The tokens are copied to separate rows only when the code is issued. */
  obtained: list(upstreamTokens),
}

/** A login that is waiting for the response of one upstream provider. */
export const upstreamStep = record({
  ...loginMembers,
  user: maybe(user),
  provider: text,
  codeVerifier: text,
  nonce: text,
  startedAtMs: count,
})
export type UpstreamStep = NonNullable<ReturnType<typeof upstreamStep>>

/** A login in progress: an upstream step without the members of its current upstream request. */
export type LoginInProgress = Omit<UpstreamStep, 'provider' | 'codeVerifier' | 'nonce' | 'startedAtMs'>

/** A provider that a user connects to a client from the connected accounts page. */
export const connection = record({
  provider: text,
  codeVerifier: text,
  nonce: text,
  browser: text,
  sessionId: text,
  userId: text,
})
export type UpstreamConnection = NonNullable<ReturnType<typeof connection>>

/** A login that is waiting for the identified user to respond to a page. */
export const confirmation = record({
  ...loginMembers,
  user,
  /** The provider that could not be connected. Absent: the page asks for consent. */
  failed: maybe(text),
})
export type Confirmation = NonNullable<ReturnType<typeof confirmation>>

const grantMembers = {
  grantId: text,
  sessionId: text,
  clientId: text,
  clientKind: oneOf('dcr', 'cimd'),
  userId: text,
  scopes: list(text),
  /** Resources that the client requested, or all resources. The token request selects one of these resources. */
  resources: list(text),
  /** True when the client is registered for refreshing and offline_access is granted. */
  refreshable: flag,
  authTimeSec: count,
  /** Method that the client must use for this grant. Absent in records from older versions. */
  authMethod: maybe(oneOf('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt')),
  /**
   * Thumbprint of the key whose possession a public client must prove to refresh. Absent: no key is required (RFC 9449
   * section 5).
   */
  jkt: maybe(text),
  /**
   * Thumbprint of the certificate that a public client must present to refresh. Absent: no certificate is required (RFC
   * 8705 section 4).
   */
  x5t: maybe(text),
}
export type Grant = Of<typeof grantMembers>

export const code = record({
  ...grantMembers,
  used: flag,
  redirectUri: text,
  redirectGiven: flag,
  codeChallenge: text,
  nonce: maybe(text),
  /** Thumbprint of the key whose possession the client must prove to redeem the code (dpop_jkt). */
  codeJkt: maybe(text),
  expiresAtMs: count,
})
export type StoredCode = NonNullable<ReturnType<typeof code>>

/** A refresh family with its newest generation. */
export const family = record({
  ...grantMembers,
  generation: count,
  rotatedAtMs: count,
  /** Id of the HMAC secret that signed the newest token (sealId). */
  signedBy: maybe(text),
  /** Expiry of the newest token. */
  expiresAtMs: count,
  /** Expiry of the family. */
  endsAtMs: count,
})
export type Family = NonNullable<ReturnType<typeof family>>

export const session = record({
  id: text,
  userId: text,
  clientId: text,
  name: maybe(text),
  email: maybe(text),
  providers: list(text),
  /** Providers that the user's groups selected at the latest sign-in. Absent: all. */
  offered: maybe(list(text)),
  grants: list(
    record({
      id: text,
      endsAtMs: count,
      /** False until the code is redeemed. Records from older versions do not have this field; absent means true. */
      redeemed: maybe(flag),
    }),
  ),
  endsAtMs: count,
})
export type LoginSession = NonNullable<ReturnType<typeof session>>

/** Tokens of one provider in one session, bound to user and client. */
export const row = record({ ...upstreamTokenMembers, userId: text, clientId: text })
export type StoredRow = NonNullable<ReturnType<typeof row>>

/** User of a browser. Every completed login creates a new record. */
export const signIn = record({ userId: text })

/** Clients that a user has signed in to, latest first. Some of these clients' sessions may have ended. */
export const connectedClients = record({ clients: list(text) })

/** Provider whose sign-in session ended and thereby ended a user's session with a client. */
export const ending = record({ provider: text })

export const consent = record({
  scopes: list(text),
  providers: list(text),
  /** Id of the latest withdrawal before this consent, or empty. A later withdrawal ends the consent. */
  after: text,
})
export type Consent = NonNullable<ReturnType<typeof consent>>

/** Withdrawal of all consents that a user gave to a client. Later consents refer to the withdrawal. */
export const withdrawal = record({ id: text, atMs: count })
export type Withdrawal = NonNullable<ReturnType<typeof withdrawal>>

/** Registration of this server with an upstream provider. */
export const registration = record({
  clientId: text,
  clientSecret: maybe(text),
  authMethod: maybe(oneOf('none', 'client_secret_basic', 'client_secret_post')),
  secretExpiresAtMs: maybe(count),
  scopes: maybe(list(text)),
  managementToken: maybe(text),
  managementUri: maybe(text),
})
export type UpstreamRegistration = NonNullable<ReturnType<typeof registration>>
