/**
 * Sessions: the grants of one user to one client, with the upstream tokens behind them.
 *
 * A session is the root of everything that is issued. A grant that the session does not list has ended, regardless of
 * token signatures. A new login by the same user with the same client joins the session, so the user need not sign in
 * again at connected providers. When the last grant ends, the session and all of its upstream tokens are deleted.
 * Source: RFC 9700 section 4.14; RFC 7009 section 2.1.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import { isOffered, keepOffered } from '../model/offered.ts'
import type { User, LoginSession, UpstreamTokensRecord } from '../model/records.ts'
import { type Repository, type SeenRecord, type State } from '../storage/state.ts'
import type { SessionClaims } from './session-claims.ts'
import { findNewestRefreshToken, lockRefreshTokens } from './upstream-refresh-tokens.ts'
import { sha256, randomId, compoundKey, upstreamRowKey } from '../model/identifiers.ts'

/**
 * Maximum number of simultaneous logins by one user with one client, for example one per machine. Logins whose code has
 * not been redeemed yet have a separate limit of the same size, so that abandoned logins do not end established logins.
 */
const maxGrants = 20
/** In each attempt, one of several simultaneous writers succeeds. Attempts after `eagerTries` are delayed slightly. */
const maxTries = 32
const eagerTries = 4
/** Number of clients listed per user. Older clients are not listed, but they keep their tokens. */
const maxConnectedClients = 100
/** Minimum lifetime of lists and links: longer than any session with default settings. */
const listedMs = 35 * 24 * 3_600_000
/** How long another replica may accept tokens of an ended grant. */
const livenessMs = 5_000

export class Sessions {
  readonly #state: State
  readonly #now: () => number
  readonly #live = new LRUCache<string, number>({ max: 20_000 })
  readonly #isDeclared: (clientId: string) => boolean
  /** Counts ended grants. The result of a lookup that began before a session ended is not cached. */
  #ends = 0

  constructor({
    state,
    now,
    isDeclared = () => false,
  }: {
    readonly state: State
    readonly now: () => number
    /** True for the id of a declared client, which cannot sign users in. */
    readonly isDeclared?: (clientId: string) => boolean
  }) {
    this.#state = state
    this.#now = now
    this.#isDeclared = isDeclared
  }

  /** Returns the running session of this user with this client. */
  async find(userId: string, clientId: string): Promise<LoginSession | undefined> {
    return this.#followLink(await this.#state.links.get(compoundKey(userId, clientId)), userId, clientId)
  }

  async #followLink(
    id: string | undefined,
    userId: string,
    clientId: string,
  ): Promise<LoginSession | undefined> {
    const session = id === undefined ? undefined : await this.#state.sessions.get(id)
    const fits = session?.userId === userId && session.clientId === clientId && session.endsAtMs > this.#now()
    return fits ? session : undefined
  }

  get(sessionId: string): Promise<LoginSession | undefined> {
    return this.#state.sessions.get(sessionId)
  }

  /**
   * Adds a new grant to the user's session, or to a new session, and stores the upstream tokens. The grant ends at
   * `endsAtMs` unless it is extended. Deletes the tokens of `withheld` providers, including tokens that an earlier
   * failure left behind.
   */
  async open(login: {
    readonly user: User
    readonly clientId: string
    readonly obtained: readonly UpstreamTokensRecord[]
    readonly offered?: readonly string[] | undefined
    readonly withheld?: readonly string[]
    readonly endsAtMs: number
  }): Promise<{ sessionId: string; grantId: string }> {
    const { user, clientId, obtained, offered, withheld = [], endsAtMs } = login
    const grant = { id: randomId(), endsAtMs, redeemed: false }
    const { userId, name, email } = user
    const providers = obtained.map(({ provider }) => provider)
    const linkKey = compoundKey(userId, clientId)
    const session = await this.#retry('a link', async () => {
      const link = await this.#state.links.read(linkKey)
      const running = await this.#followLink(link?.value, userId, clientId)
      const joined =
        running &&
        (await this.#change(running.id, (old) => ({
          ...old,
          name: name ?? old.name,
          email: email ?? old.email,
          providers: keepOffered([...old.providers, ...providers], offered),
          offered,
          grants: keepNewest([...old.grants.filter((other) => other.endsAtMs > this.#now()), grant]),
          endsAtMs: Math.max(old.endsAtMs, endsAtMs),
        })))
      if (joined) {
        await this.#state.links.touch(linkKey, this.#listedMs(joined))
        return joined
      }
      // A session that has ended in the meantime is not revived, because its end may still be in progress.
      const about = { userId, clientId, name, email, providers, offered }
      const next = { id: randomId(), ...about, grants: [grant], endsAtMs }
      await this.#state.sessions.put(next.id, next, endsAtMs - this.#now())
      // One of several simultaneous logins creates the session, and the other logins join it.
      if (
        await this.#write(this.#state.links, {
          id: linkKey,
          seen: link,
          next: next.id,
          ttlMs: this.#listedMs(next),
        })
      )
        return next
      await this.#state.sessions.delete(next.id)
      return undefined
    })
    await this.#deleteRowsOf(session.id, withheld)
    await this.#list(session)
    await this.#state.endings.delete(linkKey)
    await Promise.all(obtained.map((tokens) => this.#keepRow(session, tokens)))
    return { sessionId: session.id, grantId: grant.id }
  }

  /** Returns the running sessions of a user, one per client, latest first. */
  async of(userId: string): Promise<readonly LoginSession[]> {
    const listed = await this.#state.connectedClients.get(userId)
    const found = await Promise.all((listed?.clients ?? []).map((clientId) => this.find(userId, clientId)))
    return found.filter((session) => session !== undefined)
  }

  /** Returns the clients whose session ended because the sign-in session with a provider ended, latest first. */
  async ended(userId: string): Promise<readonly { readonly clientId: string; readonly provider: string }[]> {
    const listed = await this.#state.connectedClients.get(userId)
    const found = await Promise.all(
      (listed?.clients ?? []).map(async (clientId) => {
        const ending = await this.#state.endings.get(compoundKey(userId, clientId))
        return ending && { clientId, provider: ending.provider }
      }),
    )
    return found.filter((entry) => entry !== undefined)
  }

  /** Stores the tokens of one provider in an active session of the user. Returns false when there is no session. */
  async connect(sessionId: string, userId: string, tokens: UpstreamTokensRecord): Promise<boolean> {
    const session = await this.#change(sessionId, (old) =>
      old.userId === userId && old.grants.length > 0 && isOffered(old, tokens.provider)
        ? { ...old, providers: [...new Set([...old.providers, tokens.provider])] }
        : undefined,
    )
    return session !== undefined && this.#keepRow(session, tokens)
  }

  /** Adds the newest earlier refresh token if the provider did not issue a refresh token this time. */
  #keepRow(session: LoginSession, tokens: UpstreamTokensRecord): Promise<boolean> {
    if (tokens.refreshToken !== undefined) return this.#putRow(session, tokens)
    const account = { ...tokens, userId: session.userId }
    return lockRefreshTokens(this.#state, account, async () => {
      const sessions = await this.of(session.userId)
      const refreshToken = await findNewestRefreshToken(this.#state, sessions, { account })
      return this.#putRow(session, { ...tokens, refreshToken })
    })
  }

  /** Deletes the row again and returns false when the session or the connection has ended in the meantime. */
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

  /** Deletes the tokens of one provider. Returns false when the session does not exist. */
  async disconnect(sessionId: string, provider: string): Promise<boolean> {
    const session = await this.#change(sessionId, (old) => ({
      ...old,
      providers: old.providers.filter((name) => name !== provider),
    }))
    await this.#state.rows.delete(upstreamRowKey(sessionId, provider))
    return session !== undefined
  }

  /** Moves a client to the top of the user's list. */
  async #list({ userId, clientId, endsAtMs }: LoginSession): Promise<void> {
    const { connectedClients } = this.#state
    const ttlMs = this.#listedMs({ endsAtMs })
    await this.#retry('a list', async () => {
      const seen = await connectedClients.read(userId)
      const others = (seen?.value.clients ?? []).filter((id) => id !== clientId)
      const next = { clients: [clientId, ...others].slice(0, maxConnectedClients) }
      return (await this.#write(connectedClients, { id: userId, seen, next, ttlMs })) || undefined
    })
  }

  #listedMs({ endsAtMs }: Pick<LoginSession, 'endsAtMs'>): number {
    return Math.max(listedMs, endsAtMs - this.#now())
  }

  /** Replaces the record that was read, or adds the first record. Returns false if the record has changed since. */
  async #write<T>(
    repository: Repository<T>,
    change: {
      readonly id: string
      readonly seen: SeenRecord<T> | undefined
      readonly next: T
      readonly ttlMs: number
    },
  ): Promise<boolean> {
    const { id, seen, next, ttlMs } = change
    if (seen) return repository.swap(id, seen, next, ttlMs)
    if (await repository.add(id, next, ttlMs)) return true
    // A record that no secret can open anymore is treated as absent.
    if ((await repository.get(id)) === undefined) await repository.delete(id)
    return false
  }

  /** Repeats an attempt until it returns a result. */
  async #retry<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
    for (let tries = 0; tries < maxTries; tries++) {
      const result = await attempt()
      if (result !== undefined) return result
      if (tries >= eagerTries) await delay(Math.random() * 20)
    }
    throw new GatehouseError('STORE_DOWN', { cause: new Error(`${what} is changed too often`) })
  }

  /**
   * Marks a grant as redeemed and extends its lifetime. Returns false when the grant has ended in the meantime, in
   * which case no tokens may be issued for it.
   */
  async prolong(sessionId: string, grantId: string, endsAtMs: number): Promise<boolean> {
    const session = await this.#change(sessionId, (old) => {
      const grant = old.grants.find(({ id }) => id === grantId)
      if (!grant) return undefined
      const others = old.grants.filter((other) => other !== grant)
      const grants = keepNewest([...others, { ...grant, endsAtMs, redeemed: true }])
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

  /** True while a token's grant is live and belongs to the token's user and client. */
  async isLive(claims: SessionClaims): Promise<boolean> {
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

  /**
   * False for a deleted registration, whose tokens are then invalid. A client with a metadata document cannot be
   * deleted here.
   */
  async #clientExists(clientId: string): Promise<boolean> {
    if (this.#isDeclared(clientId)) return false
    return clientId.includes('://') || (await this.#state.clients.get(clientId)) !== undefined
  }

  /** Ends one grant and its refresh and access tokens. Ending the last grant ends the session. */
  async endGrant(sessionId: string, grantId: string): Promise<void> {
    await this.#state.families.delete(grantId)
    // One of several simultaneous callers writes the record, and the other callers do not find the grant.
    const left = await this.#change(sessionId, (old) => {
      const grants = old.grants.filter((grant) => grant.id !== grantId)
      return grants.length === old.grants.length ? undefined : { ...old, grants }
    }).finally(() => this.#forgetLive())
    if (left?.grants.length !== 0) return
    // Delete the session only while it is still empty, because a login may be joining it.
    const seen = await this.#state.sessions.read(sessionId)
    if (seen?.value.grants.length !== 0) return
    if (await this.#state.sessions.swap(sessionId, seen, undefined)) await this.#deleteRows(left)
  }

  /** Ends a session after the sign-in with a provider has ended, and stores the cause. Returns the session. */
  async endBecause(sessionId: string, provider: string): Promise<LoginSession | undefined> {
    const session = await this.#state.sessions.get(sessionId)
    if (!session || !(await this.endSession(sessionId))) return undefined
    const { userId, clientId } = session
    await this.#state.endings.put(compoundKey(userId, clientId), { provider }, listedMs)
    return session
  }

  /** Ends a session and deletes everything that belongs to it. Returns false when the session does not exist. */
  async endSession(sessionId: string): Promise<boolean> {
    const session = await this.#state.sessions.get(sessionId)
    if (!session) return false
    await this.#state.sessions.delete(sessionId).finally(() => this.#forgetLive())
    await Promise.all(session.grants.map((grant) => this.#state.families.delete(grant.id)))
    await this.#deleteRows(session)
    return true
  }

  /** Called after the write, because the result of a lookup that started before the write must not stay cached. */
  #forgetLive(): void {
    this.#ends += 1
    this.#live.clear()
  }

  #deleteRowsOf(id: string, providers: readonly string[]): Promise<unknown> {
    return Promise.all(providers.map((name) => this.#state.rows.delete(upstreamRowKey(id, name))))
  }

  /** Deletes the rows of the session, and the link that points to it. */
  async #deleteRows(session: LoginSession): Promise<void> {
    const linkKey = compoundKey(session.userId, session.clientId)
    const link = await this.#state.links.read(linkKey)
    await Promise.all([
      this.#deleteRowsOf(session.id, session.providers),
      ...(link?.value === session.id ? [this.#state.links.swap(linkKey, link, undefined)] : []),
    ])
  }

  /** Compare-and-set loop. Returns undefined when there is no session or `change` returns undefined. */
  async #change(
    sessionId: string,
    change: (old: LoginSession) => LoginSession | undefined,
  ): Promise<LoginSession | undefined> {
    const changed = await this.#retry('a session', async () => {
      const seen = await this.#state.sessions.read(sessionId)
      const next = seen && change(seen.value)
      if (!next) return 'unchanged'
      const leftMs = next.endsAtMs - this.#now()
      if (!(await this.#state.sessions.swap(sessionId, seen, next, leftMs))) return undefined
      await this.#deleteFamilies(seen.value, next)
      return next
    })
    return changed === 'unchanged' ? undefined : changed
  }

  /** Deletes the refresh families of grants that are no longer listed. */
  async #deleteFamilies(before: LoginSession, after: LoginSession): Promise<void> {
    const remaining = new Set(after.grants.map((grant) => grant.id))
    const gone = before.grants.filter((grant) => !remaining.has(grant.id))
    if (gone.length > 0) this.#forgetLive()
    await Promise.all(gone.map((grant) => this.#state.families.delete(grant.id)))
  }
}

/** Keeps the newest redeemed grants and the newest pending grants, at most `maxGrants` of each. */
function keepNewest(grants: LoginSession['grants']): LoginSession['grants'] {
  const isPending = (grant: LoginSession['grants'][number]): boolean => grant.redeemed === false
  const kept = new Set([
    ...grants.filter((grant) => !isPending(grant)).slice(-maxGrants),
    ...grants.filter(isPending).slice(-maxGrants),
  ])
  return grants.filter((grant) => kept.has(grant))
}
