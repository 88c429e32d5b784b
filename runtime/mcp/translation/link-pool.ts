/**
 * A pool of links to one server. Requests that can share a link use the same link. Each concurrent request that needs
 * an exclusive link gets a separate link. Each link belongs to a lane, and requests in different lanes never share a
 * link.
 *
 * A request gets the oldest free link in its lane, so a client's consecutive requests use the same link. The total
 * number of links in all lanes is limited. At the limit, the pool closes an idle link in another lane, or a link that
 * is waiting for a client.
 */
import { GatehouseError } from '../../../schemas/index.ts'

/** The state of one link in the pool. */
export interface PooledLink {
  users: number
  exclusive: boolean
  /** Time of the last use, in milliseconds on the pool's clock. */
  usedAt: number
  /** Number of listeners that keep the link open. A link with listeners is not idle. */
  pins: number
  readonly over: boolean
  readonly ended: Promise<string>
  close(): Promise<void>
}

export interface LinkPoolOptions<L> {
  readonly make: (lane: string) => L
  readonly maxLinks: () => number
  readonly now: () => number
  /** Frees a link that is waiting for a client's answer. Returns false if no link is waiting. */
  readonly freeWaiting?: () => boolean
}

export class LinkPool<L extends PooledLink> {
  readonly #options: LinkPoolOptions<L>
  readonly #lanes = new Map<string, L[]>()

  constructor(options: LinkPoolOptions<L>) {
    this.#options = options
  }

  get size(): number {
    let sum = 0
    for (const lane of this.#lanes.values()) sum += lane.length
    return sum
  }

  /** Returns all links in a lane. */
  links(lane: string): readonly L[] {
    return this.#lanes.get(lane) ?? []
  }

  /**
   * Returns a link. The caller must return the link with `release`. Throws TOO_MANY_SESSIONS if all links are in use.
   */
  acquire(lane: string, { exclusive }: { readonly exclusive: boolean }): L {
    const free = this.links(lane).find(
      (link) => !link.over && !link.exclusive && (!exclusive || link.users === 0),
    )
    const link = free ?? this.#make(lane)
    link.users++
    link.exclusive = exclusive
    return link
  }

  release(link: L): void {
    link.users--
    if (link.users === 0) link.exclusive = false
    link.usedAt = this.#options.now()
  }

  #make(lane: string): L {
    const { make, maxLinks, now, freeWaiting } = this.#options
    const hasRoom =
      this.size < maxLinks() || this.#makeRoom() || (freeWaiting?.() === true && this.#makeRoom())
    if (!hasRoom) throw new GatehouseError('TOO_MANY_SESSIONS')
    const link = make(lane)
    link.usedAt = now()
    const links = this.#lanes.get(lane)
    if (links) links.push(link)
    else this.#lanes.set(lane, [link])
    void link.ended.then(() => this.#remove(lane, link))
    return link
  }

  /** Adds an existing link to a lane. */
  adopt(lane: string, link: L): void {
    link.usedAt = this.#options.now()
    this.#lanes.set(lane, [...this.links(lane), link])
    void link.ended.then(() => this.#remove(lane, link))
  }

  #remove(lane: string, link: L): void {
    const left = this.links(lane).filter((other) => other !== link)
    if (left.length > 0) this.#lanes.set(lane, left)
    else this.#lanes.delete(lane)
  }

  /** Closes the least recently used idle link. Returns false if all links are in use. */
  #makeRoom(): boolean {
    let oldest: { lane: string; link: L } | undefined
    for (const [lane, links] of this.#lanes) {
      for (const link of links) {
        if (isIdle(link) && link.usedAt <= (oldest?.link.usedAt ?? Number.POSITIVE_INFINITY))
          oldest = { lane, link }
      }
    }
    if (!oldest) return false
    this.#drop(oldest.lane, oldest.link)
    return true
  }

  #drop(lane: string, link: L): void {
    this.#remove(lane, link)
    void link.close()
  }

  /** Closes idle links that were last used before `before`. */
  evict(before: number): void {
    for (const [lane, links] of this.#lanes) {
      for (const link of links) if (isIdle(link) && link.usedAt <= before) this.#drop(lane, link)
    }
  }

  async close(): Promise<void> {
    const all = [...this.#lanes.values()].flat()
    this.#lanes.clear()
    await Promise.all(all.map((link) => link.close()))
  }
}

function isIdle({ users, pins }: PooledLink): boolean {
  return users === 0 && pins === 0
}
