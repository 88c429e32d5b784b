/**
 * Authorization codes and refresh tokens: issues them, redeems them once, rotates them, and revokes them on reuse.
 *
 * Every decision is a single compare-and-set on one record. Of two simultaneous requests exactly one wins, on any
 * replica. Reuse of a code or of an old refresh token ends the grant, because one of the two holders has stolen it.
 * During a grace period, a rotated refresh token yields the same successor again while that successor is unused,
 * because clients refresh in parallel and lose responses.
 * Source: RFC 6749 sections 4.1.2, 4.1.3, 6, 10.5; RFC 7636 section 4.6; RFC 8707 section 2.2; RFC 9700 section 4.14.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { within } from '../model/scopes.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { StoredCode, Family, Grant } from '../model/records.ts'
import type { Seen, State } from '../storage/state.ts'
import type { KeyRing } from './key-ring.ts'
import { makeCode, makeRefreshToken, readCode, readRefreshToken } from './opaque-tokens.ts'
import type { Sessions } from './sessions.ts'

/** How long a redeemed code is remembered, so that its reuse is noticed. */
const usedCodeMs = 30 * 60_000
/** Clocks differ: a session outlives its last access token a little. */
const slackMs = 60_000
const maxTries = 5

export interface GrantsParts {
  readonly state: State
  readonly keys: () => KeyRing
  readonly sessions: Sessions
  readonly now: () => number
  readonly lives: {
    readonly accessTokenMs: number
    readonly refreshTokenMs: number
    /** How long a rotated refresh token yields its successor again while the successor is unused. */
    readonly refreshGraceMs: number
    readonly authCodeMs: number
    readonly grantMs: number
  }
  /** Called on reuse, for audit. */
  readonly onReuse: (what: 'code' | 'refresh', grant: Grant, source: string | undefined) => void
}

export interface CodeRequest {
  readonly redirectUri: string
  readonly redirectGiven: boolean
  readonly codeChallenge: string
  readonly nonce?: string | undefined
}

/** Who makes a token request. */
export interface TokenRequester {
  readonly clientId: string
  /** Network address, for audit. */
  readonly source?: string | undefined
}

export interface Redemption extends TokenRequester {
  readonly redirectUri: string | undefined
  readonly codeVerifier: string
}

export interface IssuedGrant {
  readonly grant: Grant
  readonly refreshToken: string | undefined
  /** Of the authorization request; only with a code. */
  readonly nonce: string | undefined
}

/** What a token request asks for within its grant. */
export interface Narrowing {
  readonly scopes: readonly string[] | undefined
  readonly resources: readonly string[]
}

export interface Granted extends IssuedGrant {
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
}

const badCode = (): OAuthError =>
  new OAuthError('invalid_grant', 'the authorization code is invalid, expired, used, or not for this request')
const badRefresh = (): OAuthError =>
  new OAuthError('invalid_grant', 'the refresh token is invalid, expired, revoked, or not for this client')

export class Grants {
  readonly #parts: GrantsParts

  constructor(parts: GrantsParts) {
    this.#parts = parts
  }

  /** Makes the code for a login that is complete. */
  async issueCode(grant: Grant, request: CodeRequest): Promise<string> {
    const { state, keys, now, lives } = this.#parts
    const { code, id } = makeCode(keys())
    const record: StoredCode = {
      ...grant,
      used: false,
      redirectUri: request.redirectUri,
      redirectGiven: request.redirectGiven,
      codeChallenge: request.codeChallenge,
      expiresAtMs: now() + lives.authCodeMs,
      ...(request.nonce === undefined ? {} : { nonce: request.nonce }),
    }
    await state.codes.put(id, record, lives.authCodeMs)
    return code
  }

  /** Redeems a code. Throws OAuthError invalid_grant, invalid_target. */
  async redeem(code: string, by: Redemption, wanted: Narrowing): Promise<Granted> {
    const { state, sessions, keys, now } = this.#parts
    const id = readCode(keys(), code)
    const seen = id === undefined ? undefined : await state.codes.read(id)
    // Another client's code stays valid: a client can neither use up nor revoke it.
    if (id === undefined || !seen || seen.value.clientId !== by.clientId) throw badCode()
    if (seen.value.used) return this.#reusedCode(seen.value, by)
    const record = seen.value
    if (record.expiresAtMs <= now() || !redirectFits(record, by) || !verifierFits(record, by)) {
      await state.codes.swap(id, seen, undefined)
      await sessions.endGrant(record.sessionId, record.grantId)
      throw badCode()
    }
    const narrowed = narrow(record, wanted)
    if (!(await state.codes.swap(id, seen, { ...record, used: true }, usedCodeMs)))
      return this.#reusedCode(record, by)
    const refreshToken = await this.#begin(record)
    return { grant: record, refreshToken, nonce: record.nonce, ...narrowed }
  }

  /** Rotates a refresh token. Throws OAuthError invalid_grant, invalid_scope, invalid_target. */
  async refresh(token: string, by: TokenRequester, wanted: Narrowing): Promise<Granted> {
    const ring = this.#parts.keys()
    const read = readRefreshToken(ring, token)
    if (!read) throw badRefresh()
    for (let tries = 0; tries < maxTries; tries++) {
      const seen = await this.#parts.state.families.read(read.family)
      if (!seen || seen.value.clientId !== by.clientId || seen.value.expiresAtMs <= this.#parts.now())
        throw badRefresh()
      const family = seen.value
      const narrowed = narrow(family, wanted)
      const generation = await this.#nextGeneration(read, seen, by, ring.secretId)
      if (generation === undefined) continue
      const refreshToken = makeRefreshToken(ring, read.family, generation)
      return { grant: grantOf(family), refreshToken, nonce: undefined, ...narrowed }
    }
    throw badRefresh()
  }

  /** What a refresh token stands for, whatever its generation; for revocation and introspection. */
  async inspectRefreshToken(token: string): Promise<{ family: Family; isCurrent: boolean } | undefined> {
    const read = readRefreshToken(this.#parts.keys(), token)
    const family = read && (await this.#parts.state.families.get(read.family))
    if (!family) return undefined
    return {
      family,
      isCurrent: read.generation === family.generation && family.expiresAtMs > this.#parts.now(),
    }
  }

  async #reusedCode(grant: Grant, { source }: TokenRequester): Promise<never> {
    this.#parts.onReuse('code', grant, source)
    await this.#parts.sessions.endGrant(grant.sessionId, grant.grantId)
    throw badCode()
  }

  /** Gives the grant its full life, and its first refresh token if it may have one. */
  async #begin(grant: Grant): Promise<string | undefined> {
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
      throw badCode()
    }
    return grant.refreshable ? makeRefreshToken(ring, grant.grantId, 0) : undefined
  }

  /**
   * Returns the generation of the token to issue, or undefined when another request has changed the family meanwhile.
   */
  async #nextGeneration(
    token: { family: string; generation: number },
    seen: Seen<Family>,
    { source }: TokenRequester,
    signedBy: string,
  ): Promise<number | undefined> {
    const { state, sessions, now, lives } = this.#parts
    const family = seen.value
    const nowMs = now()
    const current = family.generation
    if (token.generation === current - 1 && nowMs - family.rotatedAtMs < lives.refreshGraceMs) return current
    if (token.generation < current) {
      this.#parts.onReuse('refresh', family, source)
      await sessions.endGrant(family.sessionId, family.grantId)
      throw badRefresh()
    }
    if (!(await this.#isListed(family))) throw badRefresh()
    const expiresAtMs = Math.min(nowMs + lives.refreshTokenMs, family.endsAtMs)
    // A token newer than the record comes from a rotation that the store has lost, for example in a failover.
    const generation = token.generation + 1
    const next: Family = { ...family, generation, rotatedAtMs: nowMs, signedBy, expiresAtMs }
    const won = await state.families.swap(token.family, seen, next, expiresAtMs - nowMs)
    return won ? generation : undefined
  }

  /** A family whose session was ended is dead, even if its own record survived. */
  async #isListed(family: Family): Promise<boolean> {
    const session = await this.#parts.sessions.get(family.sessionId)
    const listed = session?.grants.some((grant) => grant.id === family.grantId) ?? false
    if (!listed) await this.#parts.state.families.delete(family.grantId)
    return listed
  }
}

/** The members of a grant alone, without those of the record that holds it. */
function grantOf(from: Grant): Grant {
  const { grantId, sessionId, clientId, clientKind, userId, authTimeSec } = from
  const { scopes, resources, refreshable } = from
  const what = { scopes, resources, refreshable }
  return { grantId, sessionId, clientId, clientKind, userId, authTimeSec, ...what }
}

/** The token request must repeat the redirect URI exactly as it was sent, or leave it out as it was left out. */
function redirectFits(code: StoredCode, by: Redemption): boolean {
  if (by.redirectUri === undefined) return !code.redirectGiven
  return by.redirectUri === code.redirectUri
}

function verifierFits(code: StoredCode, by: Redemption): boolean {
  const challenge = createHash('sha256').update(by.codeVerifier, 'ascii').digest()
  const expected = Buffer.from(code.codeChallenge, 'base64url')
  return expected.length === challenge.length && timingSafeEqual(challenge, expected)
}

/** A token may say less than its grant, never more (RFC 6749 section 6, RFC 8707 section 2.2), and is for one resource. */
function narrow(grant: Grant, wanted: Narrowing): { scopes: readonly string[]; audience: readonly string[] } {
  if (wanted.scopes && !within(wanted.scopes, grant.scopes)) {
    throw new OAuthError('invalid_scope', 'the requested scope exceeds what was granted')
  }
  if (!within(wanted.resources, grant.resources)) {
    throw new OAuthError('invalid_target', 'the requested resource was not granted')
  }
  const audience = wanted.resources.length > 0 ? wanted.resources : grant.resources
  // What one server gets could be presented to the other (RFC 9700 section 2.3).
  if (audience.length > 1) {
    throw new OAuthError('invalid_target', 'resource must name the one server that the token is for')
  }
  return { scopes: wanted.scopes ?? grant.scopes, audience }
}
