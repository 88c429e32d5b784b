/**
 * Authorization codes and refresh tokens: issues them, redeems them once, rotates them, and revokes them on reuse.
 *
 * Every decision is a single compare-and-set on one record. Exactly one of two simultaneous requests succeeds, on any
 * replica. Reuse of a code or an old refresh token ends the grant, because one of the two holders must have stolen it.
 * During a grace period, a rotated refresh token returns the same successor again, as long as that successor is unused.
 * The grace period is necessary because clients refresh in parallel and lose responses.
 * Source: RFC 6749 sections 4.1.2, 4.1.3, 6, 10.5; RFC 7636 section 4.6; RFC 8707 section 2.2; RFC 9700 section 4.14.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isConfirmed } from '../../oauth/index.ts'
import { within } from '../model/scopes.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { TokenAuthMethod, StoredCode, Family, Grant } from '../model/records.ts'
import type { SeenRecord, State } from '../storage/state.ts'
import type { KeyRing } from './key-ring.ts'
import { makeCode, makeRefreshToken, readCode, readRefreshToken } from './opaque-tokens.ts'
import type { Sessions } from './sessions.ts'

/** How long a redeemed code is stored, so that reuse can be detected. */
const usedCodeMs = 30 * 60_000
/** A session outlives its last access token by this margin, because clocks differ. */
const slackMs = 60_000
const maxTries = 5

interface GrantsParts {
  readonly state: State
  readonly keys: () => KeyRing
  readonly sessions: Sessions
  readonly now: () => number
  readonly lives: {
    readonly accessTokenMs: number
    readonly refreshTokenMs: number
    /** How long a rotated refresh token returns its successor again while the successor is unused. */
    readonly refreshGraceMs: number
    readonly authCodeMs: number
    readonly grantMs: number
  }
  /** Called when a code or a refresh token is reused, for the audit log. */
  readonly onReuse: (what: 'code' | 'refresh', grant: Grant, source: string | undefined) => void
}

type CodeRequest = Pick<StoredCode, 'redirectUri' | 'redirectGiven' | 'codeChallenge' | 'nonce' | 'codeJkt'>

/** The client that sent a token request. */
export interface TokenRequester {
  readonly clientId: string
  /** How the client authenticated. */
  readonly authMethod: TokenAuthMethod
  /** Thumbprint of the key that signed the client's proof. */
  readonly jkt?: string | undefined
  /** Thumbprint of the certificate that the token is bound to. */
  readonly x5t?: string | undefined
  /** Thumbprint of the certificate that the client presented. */
  readonly certificate?: string | undefined
  /** Network address, for audit. */
  readonly source?: string | undefined
}

interface Redemption extends TokenRequester {
  readonly redirectUri: string | undefined
  readonly codeVerifier: string
}

/** The part of a grant that a token request covers. */
interface RequestedAccess {
  readonly scopes: readonly string[] | undefined
  readonly resources: readonly string[]
}

export interface IssuedGrant {
  readonly grant: Grant
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly refreshToken: string | undefined
  /** Nonce from the authorization request. Present only for an authorization code. */
  readonly nonce: string | undefined
}

function invalidCode(): OAuthError {
  const text = 'the authorization code is invalid, expired, used, or not for this request'
  return new OAuthError('invalid_grant', text)
}

function invalidRefreshToken(): OAuthError {
  const text = 'the refresh token is invalid, expired, revoked, or not for this client'
  return new OAuthError('invalid_grant', text)
}

export class Grants {
  readonly #parts: GrantsParts

  constructor(parts: GrantsParts) {
    this.#parts = parts
  }

  /** Creates the code for a completed login. */
  async issueCode(grant: Grant, request: CodeRequest): Promise<string> {
    const { state, keys, now, lives } = this.#parts
    const { code, id } = makeCode(keys())
    const record: StoredCode = {
      ...grant,
      used: false,
      redirectUri: request.redirectUri,
      redirectGiven: request.redirectGiven,
      codeChallenge: request.codeChallenge,
      nonce: request.nonce,
      codeJkt: request.codeJkt,
      expiresAtMs: now() + lives.authCodeMs,
    }
    await state.codes.put(id, record, lives.authCodeMs)
    return code
  }

  /** Redeems a code. Throws OAuthError invalid_grant, invalid_target. */
  async redeem(code: string, by: Redemption, wanted: RequestedAccess): Promise<IssuedGrant> {
    const { state, sessions, keys, now } = this.#parts
    const id = readCode(keys(), code)
    const seen = id === undefined ? undefined : await state.codes.read(id)
    // Another client's code stays valid: a client can neither use up nor revoke it.
    if (id === undefined || !seen || seen.value.clientId !== by.clientId) throw invalidCode()
    checkAuthMethod(seen.value, by)
    if (seen.value.used) return this.#rejectReusedCode(seen.value, by)
    // A thief without the key cannot use up the code.
    if (seen.value.codeJkt !== undefined && seen.value.codeJkt !== by.jkt) throw invalidCode()
    const { jkt, x5t } = by.authMethod === 'none' ? by : {}
    const record = { ...seen.value, jkt, x5t }
    if (record.expiresAtMs <= now() || !matchesRedirect(record, by) || !matchesChallenge(record, by)) {
      await state.codes.swap(id, seen, undefined)
      await sessions.endGrant(record.sessionId, record.grantId)
      throw invalidCode()
    }
    const access = narrowAccess(record, wanted)
    if (!(await state.codes.swap(id, seen, { ...record, used: true }, usedCodeMs)))
      return this.#rejectReusedCode(record, by)
    const refreshToken = await this.#activate(record)
    return { grant: record, refreshToken, nonce: record.nonce, ...access }
  }

  /** Rotates a refresh token. Throws OAuthError invalid_grant, invalid_scope, invalid_target. */
  async refresh(token: string, by: TokenRequester, wanted: RequestedAccess): Promise<IssuedGrant> {
    const ring = this.#parts.keys()
    const read = readRefreshToken(ring, token)
    if (!read) throw invalidRefreshToken()
    for (let tries = 0; tries < maxTries; tries++) {
      const seen = await this.#parts.state.families.read(read.family)
      if (!seen || seen.value.clientId !== by.clientId || seen.value.expiresAtMs <= this.#parts.now())
        throw invalidRefreshToken()
      const family = seen.value
      checkAuthMethod(family, by)
      if (!isConfirmed(family, { jkt: by.jkt, x5t: by.certificate })) throw invalidRefreshToken()
      const access = narrowAccess(family, wanted)
      const generation = await this.#rotate(read, seen, { source: by.source, signedBy: ring.secretId })
      if (generation === undefined) continue
      const refreshToken = makeRefreshToken(ring, read.family, generation)
      return { grant: grantOf(family), refreshToken, nonce: undefined, ...access }
    }
    throw invalidRefreshToken()
  }

  /** Returns the family of a refresh token of any generation, for revocation and introspection. */
  async inspectRefreshToken(token: string): Promise<{ family: Family; isCurrent: boolean } | undefined> {
    const read = readRefreshToken(this.#parts.keys(), token)
    const family = read && (await this.#parts.state.families.get(read.family))
    if (!family) return undefined
    return {
      family,
      isCurrent: read.generation === family.generation && family.expiresAtMs > this.#parts.now(),
    }
  }

  async #rejectReusedCode(grant: Grant, { source }: TokenRequester): Promise<never> {
    this.#parts.onReuse('code', grant, source)
    await this.#parts.sessions.endGrant(grant.sessionId, grant.grantId)
    throw invalidCode()
  }

  /** Extends the grant to its full lifetime. Returns the grant's first refresh token when the grant is refreshable. */
  async #activate(grant: Grant): Promise<string | undefined> {
    const { state, sessions, keys, now, lives } = this.#parts
    const nowMs = now()
    const endsAtMs = nowMs + (grant.refreshable ? lives.grantMs : lives.accessTokenMs) + slackMs
    const ring = keys()
    if (grant.refreshable) {
      const family: Family = {
        ...grantOf(grant),
        generation: 0,
        rotatedAtMs: nowMs,
        signedBy: ring.secretId,
        expiresAtMs: Math.min(nowMs + lives.refreshTokenMs, nowMs + lives.grantMs),
        endsAtMs: nowMs + lives.grantMs,
      }
      await state.families.put(grant.grantId, family, family.expiresAtMs - nowMs)
    }
    if (!(await sessions.prolong(grant.sessionId, grant.grantId, endsAtMs))) {
      await state.families.delete(grant.grantId)
      throw invalidCode()
    }
    return grant.refreshable ? makeRefreshToken(ring, grant.grantId, 0) : undefined
  }

  /**
   * Returns the generation of the token to issue, or undefined when another request has changed the family in the
   * meantime.
   */
  async #rotate(
    token: { family: string; generation: number },
    seen: SeenRecord<Family>,
    { source, signedBy }: { readonly source: string | undefined; readonly signedBy: string },
  ): Promise<number | undefined> {
    const { state, sessions, now, lives } = this.#parts
    const family = seen.value
    const nowMs = now()
    const current = family.generation
    if (token.generation === current - 1 && nowMs - family.rotatedAtMs < lives.refreshGraceMs) return current
    if (token.generation < current) {
      this.#parts.onReuse('refresh', family, source)
      await sessions.endGrant(family.sessionId, family.grantId)
      throw invalidRefreshToken()
    }
    if (!(await this.#isListed(family))) throw invalidRefreshToken()
    const expiresAtMs = Math.min(nowMs + lives.refreshTokenMs, family.endsAtMs)
    // A token that is newer than the record comes from a rotation that the store has lost, for example during a
    // failover.
    const generation = token.generation + 1
    const next: Family = { ...family, generation, rotatedAtMs: nowMs, signedBy, expiresAtMs }
    const won = await state.families.swap(token.family, seen, next, expiresAtMs - nowMs)
    return won ? generation : undefined
  }

  /** False for a family whose session has ended. Deletes the family's record if it still exists. */
  async #isListed(family: Family): Promise<boolean> {
    const session = await this.#parts.sessions.get(family.sessionId)
    const listed = session?.grants.some((grant) => grant.id === family.grantId) ?? false
    if (!listed) await this.#parts.state.families.delete(family.grantId)
    return listed
  }
}

/** Returns the grant's fields, without the other fields of its record. */
function grantOf(record: Grant): Grant {
  const { grantId, sessionId, clientId, clientKind, userId, scopes, resources } = record
  const { refreshable, authTimeSec, authMethod, jkt, x5t } = record
  const ids = { grantId, sessionId, clientId, clientKind, userId }
  return { ...ids, scopes, resources, refreshable, authTimeSec, authMethod, jkt, x5t }
}

/**
 * A client that had keys when the user signed in must authenticate with them for the lifetime of the grant. Otherwise,
 * the client id, which is public, would be sufficient. Throws OAuthError invalid_client.
 */
export function checkAuthMethod(
  grant: Pick<Grant, 'clientId' | 'authMethod'>,
  { authMethod }: Pick<TokenRequester, 'authMethod'>,
): void {
  if (grant.authMethod !== 'private_key_jwt' || authMethod === 'private_key_jwt') return
  const reason = 'the grant requires the private_key_jwt authentication method'
  throw new OAuthError('invalid_client', 'client authentication failed', {
    rejection: { clientId: grant.clientId, reason },
  })
}

/** True when the token request repeats the redirect URI of the authorization request, or both requests omit it. */
function matchesRedirect(code: StoredCode, by: Redemption): boolean {
  if (by.redirectUri === undefined) return !code.redirectGiven
  return by.redirectUri === code.redirectUri
}

function matchesChallenge(code: StoredCode, by: Redemption): boolean {
  const challenge = createHash('sha256').update(by.codeVerifier, 'ascii').digest()
  const expected = Buffer.from(code.codeChallenge, 'base64url')
  return expected.length === challenge.length && timingSafeEqual(challenge, expected)
}

/** Restricts a token to a part of its grant (RFC 6749 section 6, RFC 8707 section 2.2) and to one resource. */
function narrowAccess(grant: Grant, wanted: RequestedAccess): Pick<IssuedGrant, 'scopes' | 'audience'> {
  if (wanted.scopes && !within(wanted.scopes, grant.scopes)) {
    throw new OAuthError('invalid_scope', 'the requested scope exceeds what was granted')
  }
  if (!within(wanted.resources, grant.resources)) {
    throw new OAuthError('invalid_target', 'the requested resource was not granted')
  }
  const audience = wanted.resources.length > 0 ? wanted.resources : grant.resources
  // If a token were valid for several servers, each of them could impersonate the client at the others (RFC 9700
  // section 2.3).
  if (audience.length > 1) {
    throw new OAuthError('invalid_target', 'resource must name exactly one server')
  }
  return { scopes: wanted.scopes ?? grant.scopes, audience }
}
