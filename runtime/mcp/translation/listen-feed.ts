/**
 * Keeps one `subscriptions/listen` open at a stateless server on behalf of a session client. The subscription covers
 * list changes and watched resources. If the requested lists or resources change, a new subscription opens before the
 * old one is cancelled, so no notification is lost. Only one of the two subscriptions forwards notifications.
 * Source: MCP 2026-07-28, patterns/subscriptions, stdio.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Log } from '../../net/index.ts'
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
/**
 * Maximum number of pauses while the server has not acknowledged any subscription. Each pause is twice as long as the
 * previous one.
 */
const maxPauses = 6

export interface ListenFeedOptions {
  /** Returns the raw `_meta` for a request. */
  readonly meta: () => string
  readonly log: Log
  /** First pause before a retry, in milliseconds. The default is 1 s. */
  readonly firstPauseMs?: number | undefined
}

interface Subscription {
  readonly id: string
  readonly stop: AbortController
  readonly acknowledge: (uris: ReadonlySet<string>) => void
}

const noResources: ReadonlySet<string> = new Set()

export class ListenFeed {
  readonly #requester: LinkRequester
  readonly #options: ListenFeedOptions
  readonly #closed = new AbortController()
  readonly #live = new Map<string, Subscription>()
  readonly #uris = new Set<string>()
  #lists: readonly AnnouncedList[] = []
  /** The subscription whose notifications are forwarded. */
  #forwarding: Subscription | undefined
  #newest: Subscription | undefined
  #changes: Promise<unknown> = Promise.resolve()
  /** Number of pauses since the last acknowledgement. */
  #pauses = 0

  constructor(requester: LinkRequester, options: ListenFeedOptions) {
    this.#requester = requester
    this.#options = options
  }

  /** Sets the lists for which changes are forwarded. */
  wantLists(lists: readonly AnnouncedList[]): void {
    this.#lists = lists
    if (lists.length > 0) void this.#change()
  }

  /**
   * Watches a resource. Resolves to false if the server does not support watching the resource. Throws RATE_LIMITED if
   * too many resources are watched.
   */
  async add(uri: string): Promise<boolean> {
    if (!this.#uris.has(uri) && this.#uris.size >= maxResources)
      throw new GatehouseError('RATE_LIMITED', { detail: 'too many subscriptions' })
    this.#uris.add(uri)
    const accepted = await this.#change()
    if (accepted.has(uri)) return true
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

  /** Applies changes one after another. Resolves to the watched resources. */
  #change(): Promise<ReadonlySet<string>> {
    const changed = this.#changes.then(() => this.#open())
    this.#changes = changed
    return changed
  }

  async #open(): Promise<ReadonlySet<string>> {
    const before = this.#newest
    this.#newest = undefined
    if (!this.#closed.signal.aborted && (this.#uris.size > 0 || this.#lists.length > 0)) {
      const accepted = await this.#listen()
      before?.stop.abort(new Error('replaced'))
      return accepted
    }
    before?.stop.abort(new Error('no subscriptions left'))
    return noResources
  }

  /** Opens a subscription. Resolves when the server acknowledges the subscription, or after a timeout or failure. */
  #listen(): Promise<ReadonlySet<string>> {
    const { promise, resolve } = Promise.withResolvers<ReadonlySet<string>>()
    const id = this.#requester.newId()
    const subscription: Subscription = { id, stop: new AbortController(), acknowledge: resolve }
    this.#live.set(id, subscription)
    this.#newest = subscription
    const late = setTimeout(() => resolve(noResources), acknowledgeMs)
    late.unref()
    void promise.then(() => clearTimeout(late))
    const onEnd = (): void => this.#ended(subscription)
    this.#requester
      .request(id, 'subscriptions/listen', this.#params(), subscription.stop.signal)
      .then(onEnd, onEnd)
    return promise
  }

  #params(): string {
    const filter = filterText({ kinds: this.#lists, uris: this.#uris })
    return `{"_meta":${this.#options.meta()},"notifications":${filter}}`
  }

  #ended(subscription: Subscription): void {
    this.#live.delete(subscription.id)
    subscription.acknowledge(noResources)
    if (this.#newest === subscription && !this.#closed.signal.aborted) void this.#resume()
  }

  /**
   * Reopens the subscription after a pause. Gives up if the server has not acknowledged a subscription for some time.
   */
  async #resume(): Promise<void> {
    const { log, firstPauseMs = 1_000 } = this.#options
    const pauses = this.#pauses++
    if (pauses === maxPauses)
      log.warn('the server rejects subscriptions; clients do not receive its change notifications', {
        attempts: pauses + 1,
      })
    if (pauses >= maxPauses) return
    const { signal } = this.#closed
    await sleep(firstPauseMs * 2 ** pauses, undefined, { ref: false, signal }).catch(() => undefined)
    if (!signal.aborted && this.#live.size === 0) await this.#change()
  }

  /**
   * Translates a subscription's notification. Returns the message for the client without the subscription id. Returns
   * `handled` if there is no message for the client, and undefined if the message does not belong to a subscription.
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
    if (!subscription || subscription !== this.#forwarding) return 'handled'
    const rest = withSubscription(params, undefined)
    return notificationMessage(message.method, rest.equals(emptyObjectBytes) ? undefined : rest)
  }

  #acknowledged(subscription: Subscription, accepted: JsonObject | undefined): void {
    this.#forwarding = subscription
    this.#pauses = 0
    subscription.acknowledge(new Set(accepted && readFilter(accepted).uris))
  }
}
