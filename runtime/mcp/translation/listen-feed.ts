/**
 * Holds one `subscriptions/listen` open towards a stateless server, for a session client: announced lists, and resources
 * that the client watches. A changed wish opens the next one before the last is cancelled, so that nothing falls in
 * between; only one of them speaks.
 * Source: MCP 2026-07-28, patterns/subscriptions, stdio.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'
import { emptyObjectBytes } from '../json/bytes.ts'
import { JsonObject } from '../json/object.ts'
import type { Message } from '../message.ts'
import { paramsOf } from '../param-types.ts'
import { notificationMessage } from '../write.ts'
import {
  filterText,
  type AnnouncedList,
  readFilter,
  subscriptionOf,
  withSubscription,
} from '../eras/subscriptions.ts'
import type { LinkRequester } from './requester.ts'

const maxResources = 1_000
const acknowledgeMs = 30_000
const firstPauseMs = 1_000
const maxPauses = 6

interface Subscription {
  readonly id: string
  readonly stop: AbortController
  readonly acknowledge: (uris: ReadonlySet<string>) => void
}

const none: ReadonlySet<string> = new Set()

export class ListenFeed {
  readonly #requester: LinkRequester
  readonly #meta: () => string
  readonly #closed = new AbortController()
  readonly #live = new Map<string, Subscription>()
  readonly #uris = new Set<string>()
  #lists: readonly AnnouncedList[] = []
  /** The subscription whose notifications go on. */
  #speaking: Subscription | undefined
  #newest: Subscription | undefined
  #changes: Promise<unknown> = Promise.resolve()

  /** `meta` makes the raw `_meta` of a request. */
  constructor(requester: LinkRequester, meta: () => string) {
    this.#requester = requester
    this.#meta = meta
  }

  /** Sets the lists whose changes are wanted. */
  wantLists(lists: readonly AnnouncedList[]): void {
    this.#lists = lists
    if (lists.length > 0) void this.#change()
  }

  /** Watches a resource. False when the server does not. Throws RATE_LIMITED. */
  async add(uri: string): Promise<boolean> {
    if (!this.#uris.has(uri) && this.#uris.size >= maxResources)
      throw new GatehouseError('RATE_LIMITED', { detail: 'too many subscriptions' })
    this.#uris.add(uri)
    const honoured = await this.#change()
    if (honoured.has(uri)) return true
    this.#uris.delete(uri)
    return false
  }

  async remove(uri: string): Promise<void> {
    if (this.#uris.delete(uri)) await this.#change()
  }

  close(): void {
    this.#closed.abort(new Error('closed'))
    for (const { stop } of this.#live.values()) stop.abort(new Error('closed'))
  }

  /** One change after the other; resolves with the resources that are watched then. */
  #change(): Promise<ReadonlySet<string>> {
    const changed = this.#changes.then(() => this.#open())
    this.#changes = changed
    return changed
  }

  async #open(): Promise<ReadonlySet<string>> {
    const before = this.#newest
    this.#newest = undefined
    if (!this.#closed.signal.aborted && (this.#uris.size > 0 || this.#lists.length > 0)) {
      const honoured = await this.#listen()
      before?.stop.abort(new Error('replaced'))
      return honoured
    }
    before?.stop.abort(new Error('nothing is wanted'))
    return none
  }

  /** Resolves when the server has acknowledged, or will not. */
  #listen(): Promise<ReadonlySet<string>> {
    const { promise, resolve } = Promise.withResolvers<ReadonlySet<string>>()
    const id = this.#requester.newId()
    const subscription: Subscription = { id, stop: new AbortController(), acknowledge: resolve }
    this.#live.set(id, subscription)
    this.#newest = subscription
    const late = setTimeout(() => resolve(none), acknowledgeMs)
    late.unref()
    void promise.then(() => clearTimeout(late))
    this.#requester.request(id, 'subscriptions/listen', this.#params(), subscription.stop.signal).then(
      ({ result }) => this.#ended(subscription, { graceful: result !== undefined }),
      () => this.#ended(subscription, { graceful: false }),
    )
    return promise
  }

  #params(): string {
    const filter = filterText({ kinds: this.#lists, uris: this.#uris })
    return `{"_meta":${this.#meta()},"notifications":${filter}}`
  }

  /** `graceful`: the server closed it, and may offer another one soon. */
  #ended(subscription: Subscription, { graceful }: { readonly graceful: boolean }): void {
    this.#live.delete(subscription.id)
    subscription.acknowledge(none)
    if (graceful && this.#newest === subscription) void this.#resume()
  }

  async #resume(): Promise<void> {
    for (let n = 0; n < maxPauses; n++) {
      const pauseMs = firstPauseMs * 2 ** n
      await sleep(pauseMs, undefined, { ref: false, signal: this.#closed.signal }).catch(() => undefined)
      if (this.#closed.signal.aborted || this.#live.size > 0) return
      await this.#change()
    }
  }

  /**
   * A notification of one of the subscriptions. Returns the message for the client, without the mark of the subscription;
   * `handled` when there is nothing to say; undefined when the message belongs to no subscription.
   */
  take(message: Message): Buffer | 'handled' | undefined {
    const params = paramsOf(message)
    const id = subscriptionOf(params)
    if (id === undefined) return undefined
    const subscription = this.#live.get(id)
    if (message.method === 'notifications/subscriptions/acknowledged') {
      if (subscription) this.#acknowledged(subscription, params.object('notifications'))
      return 'handled'
    }
    if (!subscription || subscription !== this.#speaking) return 'handled'
    const rest = withSubscription(params, undefined)
    return notificationMessage(message.method, rest.equals(emptyObjectBytes) ? undefined : rest)
  }

  #acknowledged(subscription: Subscription, honoured: JsonObject | undefined): void {
    this.#speaking = subscription
    subscription.acknowledge(new Set(honoured && readFilter(honoured).uris))
  }
}
