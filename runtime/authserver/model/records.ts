/**
 * The records this server keeps, as shapes. Everything is JSON; everything is sealed at rest (runtime/store).
 *
 * A *request* waits for consent, a *upstream step* for one upstream login, a *code* for its redemption. A *session* is what one
 * user granted to one client; its *grants* are the logins that feed it, each the root of one refresh family, and its
 * upstream rows hold the providers' tokens. A grant that is not listed in its session is dead, whatever token says so.
 */
import { count, flag, list, maybe, type Of, oneOf, record, text } from './codec.ts'

/** A client as it was when it was last seen valid: registered (dcr) or from its metadata document (cimd). */
export const client = record({
  id: text,
  kind: oneOf('dcr', 'cimd'),
  name: maybe(text),
  uri: maybe(text),
  redirectUris: list(text),
  grantTypes: list(text),
  scopes: list(text),
  authMethod: oneOf('none', 'client_secret_basic', 'client_secret_post'),
  /** SHA-256 of the secret; the secret itself is never stored. */
  secretHash: maybe(text),
  /** SHA-256 of the registration access token (RFC 7592). */
  managementHash: maybe(text),
  applicationType: oneOf('native', 'web'),
  softwareId: maybe(text),
  softwareVersion: maybe(text),
  issuedAtSec: count,
  /** Set at the first token; until then the registration ends after a day. */
  used: flag,
})
export type RegisteredClient = NonNullable<ReturnType<typeof client>>

const requestMembers = {
  clientId: text,
  clientKind: oneOf('dcr', 'cimd'),
  clientName: maybe(text),
  redirectUri: text,
  /** Whether the client sent redirect_uri; if so the token request must repeat it. */
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

export const upstreamStep = record({
  request,
  provider: text,
  /** Providers that the user agreed to, in order. */
  chosen: list(text),
  codeVerifier: text,
  nonce: text,
  /** Hash of the browser binding that must come back with the callback. */
  browser: text,
  /** Whose remembered consent let this login skip the page; undefined when the page was answered. */
  consentOf: maybe(text),
  /** When the page was answered; undefined when it was skipped. */
  approvedAtMs: maybe(count),
  user: maybe(user),
  /** Tokens of the upstream steps that are done; they become rows only when the code is issued. */
  obtained: list(upstreamTokens),
  startedAtMs: count,
})
export type UpstreamStep = NonNullable<ReturnType<typeof upstreamStep>>

/** A provider that a user connects, or connects again, to a client from the page of connected accounts. */
export const connection = record({
  provider: text,
  codeVerifier: text,
  nonce: text,
  browser: text,
  sessionId: text,
  userId: text,
})
export type UpstreamConnection = NonNullable<ReturnType<typeof connection>>

/** A login that waits for a response of the user who turned out to be there. */
export const confirmation = record({
  request,
  chosen: list(text),
  browser: text,
  consentOf: maybe(text),
  /** When the page was answered; undefined when it was skipped. */
  approvedAtMs: maybe(count),
  user,
  obtained: list(upstreamTokens),
  /** The provider that could not be connected; absent: consent is asked for. */
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
  /** Those that the client named, else all there are; of several the token request must choose one. */
  resources: list(text),
  /** Whether the client may refresh: registered for it, and offline_access granted. */
  refreshable: flag,
  authTimeSec: count,
}
export type Grant = Of<typeof grantMembers>

export const code = record({
  ...grantMembers,
  used: flag,
  redirectUri: text,
  redirectGiven: flag,
  codeChallenge: text,
  nonce: maybe(text),
  expiresAtMs: count,
})
export type StoredCode = NonNullable<ReturnType<typeof code>>

/** A refresh family: the newest generation, and when it came to be. */
export const family = record({
  ...grantMembers,
  generation: count,
  rotatedAtMs: count,
  /** Which HMAC secret made the newest token (sealId). */
  signedBy: maybe(text),
  /** End of the newest token, and of the family whatever happens. */
  expiresAtMs: count,
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
  grants: list(
    record({
      id: text,
      endsAtMs: count,
      /** False until the code is redeemed. Records of older versions do not have this field; absent means true. */
      redeemed: maybe(flag),
    }),
  ),
  endsAtMs: count,
})
export type LoginSession = NonNullable<ReturnType<typeof session>>

/** Tokens of one provider in one session, bound to user and client. */
export const row = record({ ...upstreamTokenMembers, userId: text, clientId: text })
export type StoredRow = NonNullable<ReturnType<typeof row>>

/** Who a browser is signed in as: made when a login is complete, again each time. */
export const signIn = record({ userId: text })

/** The clients that a user has let in, the latest first; whether they still are, their sessions say. */
export const connectedClients = record({ clients: list(text) })

/** Why the session of a user with a client is over, when nobody ended it: the provider whose sign-in was over. */
export const ending = record({ provider: text })

export const consent = record({
  scopes: list(text),
  providers: list(text),
  /** The latest withdrawal when it was given, or empty: any other one since ends it. */
  after: text,
})
export type Consent = NonNullable<ReturnType<typeof consent>>

/** Consents of a user to a client count only when they were given after this one, which they then name. */
export const withdrawal = record({ id: text, atMs: count })
export type Withdrawal = NonNullable<ReturnType<typeof withdrawal>>

/** Our own registration at an upstream. */
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
