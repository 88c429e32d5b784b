/**
 * Sessions: what one user granted to one client, with the upstream tokens behind it.
 *
 * A session is the root of everything issued: a grant that is not listed in it is dead, whatever signature its tokens
 * carry. Logging in again as the same user with the same client joins the session, so that providers that are still
 * connected need not be asked again. The last grant takes the session and every upstream token with it.
 * Source: RFC 9700 section 4.14; RFC 7009 section 2.1.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import type { User, LoginSession, UpstreamTokensRecord } from '../model/records.ts'
import { type Repository, type Seen, type State } from '../storage/state.ts'
import { exclusively, newestRefreshToken } from './upstream-refresh-tokens.ts'
import { sha256, randomId, compoundKey, upstreamRowKey } from '../model/identifiers.ts'

/**
 * Maximum number of simultaneous logins of one user with one client, for example one per machine. Logins whose code
 * is not redeemed yet have a limit of the same size, so that abandoned logins do not end established ones.
 */
const maxGrants = 20
/** Of several writers at once each try lets one through; then a short pause apart. */
const maxTries = 32
const eagerTries = 4
/** Clients of one user that are listed; beyond, the oldest are only reachable by their own tokens. */
const maxConnectedClients = 100
/** Lists and links live at least this long: longer than any session that the defaults allow. */
const listedMs = 35 * 24 * 3_600_000
/** How long another replica may go on accepting tokens of a grant that was ended elsewhere. */
const livenessMs = 5_000

export interface IssuedClaims {
  readonly tsid: string
  readonly gid: string
  readonly sub: string
  readonly client_id: string
}

/** What a caller's token says about its session; undefined for tokens that are not of this server. */
export function sessionClaims(caller: Caller): IssuedClaims | undefined {
  const { tsid, gid, client_id } = caller.claims
  if (typeof tsid !== 'string' || typeof gid !== 'string' || typeof client_id !== 'string') return undefined
  return { tsid, gid, client_id, sub: caller.subject }
}

export interface Ended {
  readonly clientId: string
  readonly provider: string
}

export interface SessionsParts {
  readonly state: State
  readonly now: () => number
}

export class Sessions {
  readonly #state: State
  readonly #now: () => number
  readonly #live = new LRUCache<string, number>({ max: 20_000 })
  /** Counts the ends of grants: a response that was asked for before one is not remembered after it. */
  #ends = 0

  constructor(parts: SessionsParts) {
    this.#state = parts.state
    this.#now = parts.now
  }

  /** The running session of this user with this client. */
  async find(userId: string, clientId: string): Promise<LoginSession | undefined> {
    return this.#linked(await this.#state.links.get(compoundKey(userId, clientId)), userId, clientId)
  }

  async #linked(id: string | undefined, userId: string, clientId: string): Promise<LoginSession | undefined> {
    const session = id === undefined ? undefined : await this.#state.sessions.get(id)
    const fits = session?.userId === userId && session.clientId === clientId && session.endsAtMs > this.#now()
    return fits ? session : undefined
  }

  get(sessionId: string): Promise<LoginSession | undefined> {
    return this.#state.sessions.get(sessionId)
  }

  /**
   * Puts a new grant into the user's session, or into a new one, and stores what the upstreams gave.
   * The grant ends at `endsAtMs` unless it is prolonged.
   */
  async open(
    user: User,
    clientId: string,
    obtained: readonly UpstreamTokensRecord[],
    endsAtMs: number,
  ): Promise<{ sessionId: string; grantId: string }> {
    const grant = { id: randomId(), endsAtMs, redeemed: false }
    const personal = {
      ...(user.name === undefined ? {} : { name: user.name }),
      ...(user.email === undefined ? {} : { email: user.email }),
    }
    const providers = obtained.map((tokens) => tokens.provider)
    const linkKey = compoundKey(user.userId, clientId)
    const session = await this.#race('a link', async () => {
      const link = await this.#state.links.read(linkKey)
      const running = await this.#linked(link?.value, user.userId, clientId)
      const joined =
        running &&
        (await this.#change(running.id, (old) => ({
          ...old,
          ...personal,
          providers: [...new Set([...old.providers, ...providers])],
          grants: newest([...old.grants.filter((one) => one.endsAtMs > this.#now()), grant]),
          endsAtMs: Math.max(old.endsAtMs, endsAtMs),
        })))
      if (joined) {
        await this.#state.links.touch(linkKey, this.#listedMs(joined))
        return joined
      }
      // A session that ended meanwhile is not revived: its end may still be in flight.
      const made = { id: randomId(), userId: user.userId, clientId, providers, grants: [grant], endsAtMs }
      const next: LoginSession = { ...made, ...personal }
      await this.#state.sessions.put(next.id, next, endsAtMs - this.#now())
      // Of logins that end at once one makes the session; the others join it.
      if (await this.#write(this.#state.links, linkKey, link, next.id, this.#listedMs(next))) return next
      await this.#state.sessions.delete(next.id)
      return undefined
    })
    await this.#list(session)
    await this.#state.endings.delete(linkKey)
    await Promise.all(obtained.map((tokens) => this.#keepRow(session, tokens)))
    return { sessionId: session.id, grantId: grant.id }
  }

  /** The running sessions of a user, one for each client, the latest first. */
  async of(userId: string): Promise<readonly LoginSession[]> {
    const listed = await this.#state.connectedClients.get(userId)
    const found = await Promise.all((listed?.clients ?? []).map((clientId) => this.find(userId, clientId)))
    return found.filter((session) => session !== undefined)
  }

  /** Clients of a user whose session is over because the sign-in at a provider was; the latest first. */
  async ended(userId: string): Promise<readonly Ended[]> {
    const listed = await this.#state.connectedClients.get(userId)
    const found = await Promise.all(
      (listed?.clients ?? []).map(async (clientId) => {
        const ending = await this.#state.endings.get(compoundKey(userId, clientId))
        return ending && { clientId, provider: ending.provider }
      }),
    )
    return found.filter((one) => one !== undefined)
  }

  /** Stores what one provider gave for a session that is running. False when it is not, or is another user's. */
  async connect(sessionId: string, userId: string, tokens: UpstreamTokensRecord): Promise<boolean> {
    const session = await this.#change(sessionId, (old) =>
      old.userId === userId && old.grants.length > 0
        ? { ...old, providers: [...new Set([...old.providers, tokens.provider])] }
        : undefined,
    )
    return session !== undefined && this.#keepRow(session, tokens)
  }

  /** A provider that gave no refresh token this time may have given one before. */
  #keepRow(session: LoginSession, tokens: UpstreamTokensRecord): Promise<boolean> {
    if (tokens.refreshToken !== undefined) return this.#putRow(session, tokens)
    const account = { ...tokens, userId: session.userId }
    return exclusively(this.#state, account, async () => {
      const sessions = await this.of(session.userId)
      const refreshToken = await newestRefreshToken(this.#state, sessions, account)
      return this.#putRow(session, refreshToken === undefined ? tokens : { ...tokens, refreshToken })
    })
  }

  /** False when the session ended, or the provider was disconnected, while the row was written: then it goes again. */
  async #putRow(session: LoginSession, tokens: UpstreamTokensRecord): Promise<boolean> {
    const { id, userId, clientId } = session
    const rowId = upstreamRowKey(id, tokens.provider)
    await this.#state.rows.put(rowId, { ...tokens, userId, clientId }, session.endsAtMs - this.#now())
    const after = await this.#state.sessions.get(id)
    if (!after?.providers.includes(tokens.provider)) {
      await this.#state.rows.delete(rowId)
      return false
    }
    if (after.endsAtMs > session.endsAtMs) {
      await this.#state.rows.touch(rowId, after.endsAtMs - this.#now())
    }
    return true
  }

  /** Forgets what one provider gave, as if it had never been connected. False when there is no such session. */
  async disconnect(sessionId: string, provider: string): Promise<boolean> {
    const session = await this.#change(sessionId, (old) => ({
      ...old,
      providers: old.providers.filter((name) => name !== provider),
    }))
    await this.#state.rows.delete(upstreamRowKey(sessionId, provider))
    return session !== undefined
  }

  /** Puts a client at the head of the user's list. */
  async #list({ userId, clientId, endsAtMs }: LoginSession): Promise<void> {
    const { connectedClients } = this.#state
    await this.#race('a list', async () => {
      const seen = await connectedClients.read(userId)
      const others = (seen?.value.clients ?? []).filter((id) => id !== clientId)
      const next = { clients: [clientId, ...others].slice(0, maxConnectedClients) }
      return (
        (await this.#write(connectedClients, userId, seen, next, this.#listedMs({ endsAtMs }))) || undefined
      )
    })
  }

  #listedMs({ endsAtMs }: Pick<LoginSession, 'endsAtMs'>): number {
    return Math.max(listedMs, endsAtMs - this.#now())
  }

  /** Writes over what was seen, or where nothing was. */
  async #write<T>(
    { add, swap, get, delete: remove }: Repository<T>,
    id: string,
    seen: Seen<T> | undefined,
    next: T,
    ttlMs: number,
  ): Promise<boolean> {
    if (seen) return swap(id, seen, next, ttlMs)
    if (await add(id, next, ttlMs)) return true
    // Something is there that no secret opens any more: it counts as absent.
    if ((await get(id)) === undefined) await remove(id)
    return false
  }

  /** Tries until there is a result: of several writers at once each try lets one through. */
  async #race<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
    for (let tries = 0; tries < maxTries; tries++) {
      const result = await attempt()
      if (result !== undefined) return result
      if (tries >= eagerTries) await delay(Math.random() * 20)
    }
    throw new GatehouseError('STORE_DOWN', { cause: new Error(`${what} is changed too often`) })
  }

  /**
   * Marks a grant as redeemed and extends its lifetime. Returns false when the grant has ended meanwhile; no tokens
   * may be issued for it then.
   */
  async prolong(sessionId: string, grantId: string, endsAtMs: number): Promise<boolean> {
    const session = await this.#change(sessionId, (old) => {
      const grant = old.grants.find(({ id }) => id === grantId)
      if (!grant) return undefined
      const others = old.grants.filter((one) => one !== grant)
      const grants = newest([...others, { ...grant, endsAtMs, redeemed: true }])
      return { ...old, grants, endsAtMs: Math.max(old.endsAtMs, endsAtMs) }
    })
    if (!session) return false
    const leftMs = session.endsAtMs - this.#now()
    await Promise.all([
      this.#state.links.touch(compoundKey(session.userId, session.clientId), this.#listedMs(session)),
      this.#state.connectedClients.touch(session.userId, this.#listedMs(session)),
      ...session.providers.map((provider) =>
        this.#state.rows.touch(upstreamRowKey(sessionId, provider), leftMs),
      ),
    ])
    return true
  }

  /** True while the grant that a token names is alive and belongs to who the token says. */
  async isLive(claims: IssuedClaims): Promise<boolean> {
    const name = `${claims.tsid} ${claims.gid} ${claims.sub} ${claims.client_id}`
    const until = this.#live.get(name)
    if (until !== undefined && this.#now() < until) return true
    const ends = this.#ends
    const session = await this.#state.sessions.get(claims.tsid)
    const listed = session?.grants.find((grant) => sha256(grant.id) === claims.gid)
    const live =
      session?.userId === claims.sub &&
      session.clientId === claims.client_id &&
      listed !== undefined &&
      listed.endsAtMs > this.#now() &&
      (await this.#clientExists(session.clientId))
    if (live && ends === this.#ends) this.#live.set(name, this.#now() + livenessMs)
    return live
  }

  /** A registration that was deleted takes its tokens with it; a described client cannot be deleted here. */
  async #clientExists(clientId: string): Promise<boolean> {
    return clientId.includes('://') || (await this.#state.clients.get(clientId)) !== undefined
  }

  /** Ends one grant: its refresh tokens, its access tokens, and with the last one the session. */
  async endGrant(sessionId: string, grantId: string): Promise<void> {
    await this.#state.families.delete(grantId)
    // One of many that end it at once writes; the others find it gone.
    const left = await this.#change(sessionId, (old) => {
      const grants = old.grants.filter((grant) => grant.id !== grantId)
      return grants.length === old.grants.length ? undefined : { ...old, grants }
    }).finally(() => this.#forgetLive())
    if (left?.grants.length !== 0) return
    // Only while it is still empty: somebody may be joining it right now.
    const seen = await this.#state.sessions.read(sessionId)
    if (seen?.value.grants.length !== 0) return
    if (await this.#state.sessions.swap(sessionId, seen, undefined)) await this.#dropWhatBelongsTo(left)
  }

  /** Ends a session because the sign-in at a provider has ended, and remembers why. Undefined when there is no session. */
  async endBecause(sessionId: string, provider: string): Promise<LoginSession | undefined> {
    const session = await this.#state.sessions.get(sessionId)
    if (!session || !(await this.endSession(sessionId))) return undefined
    const { userId, clientId } = session
    await this.#state.endings.put(compoundKey(userId, clientId), { provider }, listedMs)
    return session
  }

  /** Ends a session with everything in it: what an administrator does. False when there is none. */
  async endSession(sessionId: string): Promise<boolean> {
    const session = await this.#state.sessions.get(sessionId)
    if (!session) return false
    await this.#state.sessions.delete(sessionId).finally(() => this.#forgetLive())
    await Promise.all(session.grants.map((grant) => this.#state.families.delete(grant.id)))
    await this.#dropWhatBelongsTo(session)
    return true
  }

  /** After the write: a response from before it must not outlive it. */
  #forgetLive(): void {
    this.#ends += 1
    this.#live.clear()
  }

  async #dropWhatBelongsTo(session: LoginSession): Promise<void> {
    const linkKey = compoundKey(session.userId, session.clientId)
    const link = await this.#state.links.read(linkKey)
    await Promise.all([
      ...session.providers.map((provider) => this.#state.rows.delete(upstreamRowKey(session.id, provider))),
      ...(link?.value === session.id ? [this.#state.links.swap(linkKey, link, undefined)] : []),
    ])
  }

  /** Compare-and-set loop; undefined when there is no session or the change says no. */
  async #change(
    sessionId: string,
    change: (old: LoginSession) => LoginSession | undefined,
  ): Promise<LoginSession | undefined> {
    const changed = await this.#race('a session', async () => {
      const seen = await this.#state.sessions.read(sessionId)
      const next = seen && change(seen.value)
      if (!next) return 'no'
      const leftMs = next.endsAtMs - this.#now()
      if (!(await this.#state.sessions.swap(sessionId, seen, next, leftMs))) return undefined
      await this.#forget(seen.value, next)
      return next
    })
    return changed === 'no' ? undefined : changed
  }

  /** Grants that fell out of the list lose their refresh family too. */
  async #forget(before: LoginSession, after: LoginSession): Promise<void> {
    const remaining = new Set(after.grants.map((grant) => grant.id))
    const gone = before.grants.filter((grant) => !remaining.has(grant.id))
    if (gone.length > 0) this.#forgetLive()
    await Promise.all(gone.map((grant) => this.#state.families.delete(grant.id)))
  }
}

/** Keeps the newest redeemed grants and the newest pending grants, at most `maxGrants` of each. */
function newest(grants: LoginSession['grants']): LoginSession['grants'] {
  const isPending = (grant: LoginSession['grants'][number]): boolean => grant.redeemed === false
  const kept = new Set([
    ...grants.filter((grant) => !isPending(grant)).slice(-maxGrants),
    ...grants.filter(isPending).slice(-maxGrants),
  ])
  return grants.filter((grant) => kept.has(grant))
}
