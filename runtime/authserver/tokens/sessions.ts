/**
 * Sessions: what one person granted to one client, with the upstream tokens behind it.
 *
 * A session is the root of everything issued: a grant that is not listed in it is dead, whatever signature its tokens
 * carry. Logging in again as the same person with the same client joins the session, so that providers that are still
 * connected need not be asked again. The last grant takes the session and every upstream token with it.
 * Source: design, section 4 "refresh tokens"; RFC 9700 section 4.14; RFC 7009 section 2.1.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import type { Person, Session, UpstreamTokens } from '../storage/records.ts'
import { key, type State } from '../storage/state.ts'
import { hashed, randomId } from './opaque.ts'

/** Logins of one person with one client that live side by side, for instance one per machine. */
const maxGrants = 20
/** Of several writers at once each try lets one through; then a short pause apart. */
const maxTries = 32
const eagerTries = 4
/** Programs of one person that are listed; beyond, the oldest are only reachable by their own tokens. */
const maxPrograms = 100
/** No session lives longer. */
const listedMs = 35 * 24 * 3_600_000
/** How long another replica may go on accepting tokens of a grant that was ended elsewhere. */
const livenessMs = 5_000

export interface Claims {
  readonly tsid: string
  readonly gid: string
  readonly sub: string
  readonly client_id: string
}

/** What a caller's token says about its session; undefined for tokens that are not of this server. */
export function sessionClaims(caller: Caller): Claims | undefined {
  const { tsid, gid, client_id } = caller.claims
  if (typeof tsid !== 'string' || typeof gid !== 'string' || typeof client_id !== 'string') return undefined
  return { tsid, gid, client_id, sub: caller.subject }
}

export interface SessionsParts {
  readonly state: State
  readonly now: () => number
}

export class Sessions {
  readonly #state: State
  readonly #now: () => number
  readonly #live = new LRUCache<string, number>({ max: 20_000 })

  constructor(parts: SessionsParts) {
    this.#state = parts.state
    this.#now = parts.now
  }

  /** The running session of this person with this client. */
  async find(userId: string, clientId: string): Promise<Session | undefined> {
    const id = await this.#state.links.get(key(userId, clientId))
    const session = id === undefined ? undefined : await this.#state.sessions.get(id)
    const fits = session?.userId === userId && session.clientId === clientId && session.endsAtMs > this.#now()
    return fits ? session : undefined
  }

  get(sessionId: string): Promise<Session | undefined> {
    return this.#state.sessions.get(sessionId)
  }

  /**
   * Puts a new grant into the person's session, or into a new one, and stores what the upstreams gave.
   * The grant ends at `endsAtMs` unless it is prolonged.
   */
  async open(
    person: Person,
    clientId: string,
    obtained: readonly UpstreamTokens[],
    endsAtMs: number,
  ): Promise<{ sessionId: string; grantId: string }> {
    const grant = { id: randomId(), endsAtMs }
    const personal = {
      ...(person.name === undefined ? {} : { name: person.name }),
      ...(person.email === undefined ? {} : { email: person.email }),
    }
    const providers = obtained.map((tokens) => tokens.provider)
    const joined = await this.find(person.userId, clientId)
    const added =
      joined &&
      (await this.#change(joined.id, (old) => ({
        ...old,
        ...personal,
        providers: [...new Set([...old.providers, ...providers])],
        grants: [...old.grants.filter((one) => one.endsAtMs > this.#now()), grant].slice(-maxGrants),
        endsAtMs: Math.max(old.endsAtMs, endsAtMs),
      })))
    // A session that ended meanwhile is not revived: its end may still be under way.
    const session: Session = added ?? {
      id: randomId(),
      userId: person.userId,
      clientId,
      providers,
      grants: [grant],
      endsAtMs,
      ...personal,
    }
    if (!added) {
      await this.#state.sessions.put(session.id, session, endsAtMs - this.#now())
      await this.#list(person.userId, clientId)
    }
    const leftMs = session.endsAtMs - this.#now()
    const owner = { userId: person.userId, clientId }
    await Promise.all([
      this.#state.links.put(key(person.userId, clientId), session.id, leftMs),
      ...obtained.map((tokens) =>
        this.#state.rows.put(rowKey(session.id, tokens.provider), { ...tokens, ...owner }, leftMs),
      ),
    ])
    return { sessionId: session.id, grantId: grant.id }
  }

  /** The running sessions of a person, one for each program, the latest first. */
  async of(userId: string): Promise<readonly Session[]> {
    const listed = await this.#state.programs.get(userId)
    const found = await Promise.all((listed?.clients ?? []).map((clientId) => this.find(userId, clientId)))
    return found.filter((session) => session !== undefined)
  }

  /** Stores what one provider gave for a session that is running. False when it is not, or is another person's. */
  async connect(sessionId: string, userId: string, tokens: UpstreamTokens): Promise<boolean> {
    const session = await this.#change(sessionId, (old) =>
      old.userId === userId && old.grants.length > 0
        ? { ...old, providers: [...new Set([...old.providers, tokens.provider])] }
        : undefined,
    )
    if (!session) return false
    const row = { ...tokens, userId, clientId: session.clientId }
    await this.#state.rows.put(rowKey(sessionId, tokens.provider), row, session.endsAtMs - this.#now())
    return true
  }

  /** Forgets what one provider gave, as if it had never been connected. False when there is no such session. */
  async disconnect(sessionId: string, provider: string): Promise<boolean> {
    const session = await this.#change(sessionId, (old) => ({
      ...old,
      providers: old.providers.filter((name) => name !== provider),
    }))
    await this.#state.rows.delete(rowKey(sessionId, provider))
    return session !== undefined
  }

  /** Puts a program at the head of the person's list. */
  async #list(userId: string, clientId: string): Promise<void> {
    for (let tries = 0; tries < maxTries; tries++) {
      const seen = await this.#state.programs.read(userId)
      const others = (seen?.value.clients ?? []).filter((id) => id !== clientId)
      const next = { clients: [clientId, ...others].slice(0, maxPrograms) }
      const done = seen
        ? await this.#state.programs.swap(userId, seen, next, listedMs)
        : await this.#state.programs.add(userId, next, listedMs)
      if (done) return
      if (tries >= eagerTries) await delay(Math.random() * 20)
    }
    throw new GatehouseError('STORE_DOWN', { cause: new Error('a list is changed too often') })
  }

  /** Gives a grant a later end. False when it was ended meanwhile; then nothing may be issued for it. */
  async prolong(sessionId: string, grantId: string, endsAtMs: number): Promise<boolean> {
    const session = await this.#change(sessionId, (old) => {
      if (!old.grants.some((grant) => grant.id === grantId)) return undefined
      const grants = old.grants.map((grant) => (grant.id === grantId ? { ...grant, endsAtMs } : grant))
      return { ...old, grants, endsAtMs: Math.max(old.endsAtMs, endsAtMs) }
    })
    if (!session) return false
    const leftMs = session.endsAtMs - this.#now()
    await Promise.all([
      this.#state.links.touch(key(session.userId, session.clientId), leftMs),
      ...session.providers.map((provider) => this.#state.rows.touch(rowKey(sessionId, provider), leftMs)),
    ])
    return true
  }

  /** True while the grant that a token names is alive and belongs to who the token says. */
  async isLive(claims: Claims): Promise<boolean> {
    const name = `${claims.tsid} ${claims.gid} ${claims.sub} ${claims.client_id}`
    const until = this.#live.get(name)
    if (until !== undefined && this.#now() < until) return true
    const session = await this.#state.sessions.get(claims.tsid)
    const listed = session?.grants.find((grant) => hashed(grant.id) === claims.gid)
    const live =
      session?.userId === claims.sub &&
      session.clientId === claims.client_id &&
      listed !== undefined &&
      listed.endsAtMs > this.#now() &&
      (await this.#clientExists(session.clientId))
    if (live) this.#live.set(name, this.#now() + livenessMs)
    return live
  }

  /** A registration that was deleted takes its tokens with it; a described client cannot be deleted here. */
  async #clientExists(clientId: string): Promise<boolean> {
    return clientId.includes('://') || (await this.#state.clients.get(clientId)) !== undefined
  }

  /** Ends one grant: its refresh tokens, its access tokens, and with the last one the session. */
  async endGrant(sessionId: string, grantId: string): Promise<void> {
    await this.#state.families.delete(grantId)
    this.#live.clear()
    // One of many that end it at once writes; the others find it gone.
    const left = await this.#change(sessionId, (old) => {
      const grants = old.grants.filter((grant) => grant.id !== grantId)
      return grants.length === old.grants.length ? undefined : { ...old, grants }
    })
    if (left?.grants.length !== 0) return
    // Only while it is still empty: somebody may be joining it right now.
    const seen = await this.#state.sessions.read(sessionId)
    if (seen?.value.grants.length !== 0) return
    if (await this.#state.sessions.swap(sessionId, seen, undefined)) await this.#dropWhatBelongsTo(left)
  }

  /** Ends a session with everything in it: what an administrator does. False when there is none. */
  async endSession(sessionId: string): Promise<boolean> {
    const session = await this.#state.sessions.get(sessionId)
    if (!session) return false
    this.#live.clear()
    await this.#state.sessions.delete(sessionId)
    await Promise.all(session.grants.map((grant) => this.#state.families.delete(grant.id)))
    await this.#dropWhatBelongsTo(session)
    return true
  }

  async #dropWhatBelongsTo(session: Session): Promise<void> {
    const linkKey = key(session.userId, session.clientId)
    const link = await this.#state.links.read(linkKey)
    await Promise.all([
      ...session.providers.map((provider) => this.#state.rows.delete(rowKey(session.id, provider))),
      ...(link?.value === session.id ? [this.#state.links.swap(linkKey, link, undefined)] : []),
    ])
  }

  /** Compare-and-set loop; undefined when there is no session or the change says no. */
  async #change(
    sessionId: string,
    change: (old: Session) => Session | undefined,
  ): Promise<Session | undefined> {
    for (let tries = 0; tries < maxTries; tries++) {
      const seen = await this.#state.sessions.read(sessionId)
      const next = seen && change(seen.value)
      if (!next) return undefined
      const leftMs = next.endsAtMs - this.#now()
      if (await this.#state.sessions.swap(sessionId, seen, next, leftMs)) {
        await this.#forget(seen.value, next)
        return next
      }
      if (tries >= eagerTries) await delay(Math.random() * 20)
    }
    throw new GatehouseError('STORE_DOWN', { cause: new Error('a session is changed too often') })
  }

  /** Grants that fell out of the list lose their refresh family too. */
  async #forget(before: Session, after: Session): Promise<void> {
    const kept = new Set(after.grants.map((grant) => grant.id))
    const gone = before.grants.filter((grant) => !kept.has(grant.id))
    await Promise.all(gone.map((grant) => this.#state.families.delete(grant.id)))
  }
}

export function rowKey(sessionId: string, provider: string): string {
  return key(sessionId, provider)
}
