/**
 * One server process that all clients share. Each client gets its own conversation with unique ids and progress tokens,
 * which survives a restart of the process.
 *
 * Requests that are pending when the streams break get an error and are never sent again, because they may have been
 * executed. Later requests wait until a process is available again. Ids have a random part, so that responses meant for
 * an earlier or different writer are not delivered. Server messages without a request go to the affected clients: list
 * changes to all clients, updates to subscribers, and log messages to the waiting client if there is only one. Server
 * requests are rejected, because they do not belong to a specific client.
 * Source: MCP 2025-11-25 and 2026-07-28, stdio.
 */
import { randomBytes } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  errorMessage,
  JsonObject,
  type Message,
  announcedLists,
  changedList,
  listChangedMethod,
  responseMessage,
  subscriptionOf,
  withSubscription,
  notificationMessage,
  paramsOf,
  passesLevel,
  requestMessage,
  resultMessage,
  scanMessage,
  updatedMethod,
  type ServerLink,
  linkEnded,
  LinkRequester,
  withClientSubscription,
} from '../../../mcp/index.ts'
import type { Log } from '../../../net/index.ts'
import { makeUnreadableReporter } from '../messages.ts'
import { lineOf } from '../peer.ts'
import { type Introduction, introduce, introductionFor } from './introduction.ts'
import { SharedSessionState } from './session-state.ts'
import { type LinkOwner, SharedLink } from './shared-link.ts'
import { WaitingRequests } from './waiting-requests.ts'

/** The connection to the server's standard input, while attached. */
export interface Wire {
  write(line: Buffer): void
  /** Number of buffered bytes. */
  readonly unsent: number
}

export interface SharedServerOptions {
  readonly log: Log
  /** This program's own `Implementation` as raw JSON. */
  readonly info: string
  /** How long a request may wait while the server is unavailable. Default 30 s. */
  readonly waitMs?: number | undefined
  /** Called with the number of requests that were lost when the process ended, and the reason. */
  readonly onLost?: ((count: number, why: string) => void) | undefined
}

/** A request sent to the server. */
interface Sent {
  readonly link: SharedLink
  readonly clientId: string
  /** The client's raw progress token. */
  readonly progressToken: string | undefined
  /** True for `subscriptions/listen`. */
  readonly isSubscription: boolean
}

const maxInFlight = 10_000
/** Limit per client, so that no client monopolizes the server. */
const maxInFlightOfOne = 1_000
const maxUnsentBytes = 32 * 1024 * 1024

export class SharedServer implements LinkOwner {
  readonly #options: SharedServerOptions
  readonly #prefix = `gatehouse-${randomBytes(6).toString('hex')}-`
  readonly #requester: LinkRequester
  readonly #links = new Set<SharedLink>()
  /** Keyed by the raw id that the server sees. */
  readonly #sent = new Map<string, Sent>()
  readonly #waiting: WaitingRequests
  readonly #state: SharedSessionState
  readonly #reportUnreadable: (cause: unknown) => void
  #nextId = 1
  #wire: Wire | undefined
  #introduction: Introduction | undefined
  #initialized: JsonObject | undefined
  #isReady = false
  /** Number of responses to requests that this proxy never sent. */
  foreign = 0

  constructor(options: SharedServerOptions) {
    this.#options = options
    this.#waiting = new WaitingRequests(options.waitMs ?? 30_000, () => this.notReady)
    this.#requester = new LinkRequester((message) => this.#write(message), `${this.#prefix}own-`)
    this.#state = new SharedSessionState(this.#requester)
    this.#reportUnreadable = makeUnreadableReporter(options.log)
  }

  /** The reason why requests are waiting, as shown to clients. */
  notReady = 'it is starting'

  get isReady(): boolean {
    return this.#isReady
  }

  get inFlight(): number {
    return this.#sent.size
  }

  /** Number of requests waiting for the server. */
  get waiting(): number {
    return this.#waiting.size
  }

  take(onMessage: (message: Message) => void): ServerLink {
    const link = new SharedLink(this, onMessage)
    this.#links.add(link)
    return link
  }

  /**
   * Called when the process accepts input. `known` is the `initialize` or `server/discover` result from earlier in this
   * run. Resolves with the result once requests are being sent again. Rejects when the result is invalid or the process
   * ends.
   */
  async attached(wire: Wire, known: Introduction | undefined): Promise<Introduction> {
    this.#wire = wire
    const before = this.#introduction
    const introduction = await introduce(this.#requester, this.#options.info, known)
    if (before && isOther(before, introduction))
      throw new GatehouseError('BACKEND_SESSION_LOST', {
        detail: 'the server changed its protocol revision',
      })
    this.#introduction = introduction
    if (introduction.era === 'session') this.#initialized = new JsonObject(Buffer.from(introduction.result))
    if (before && introduction !== known) this.#state.restore()
    this.#isReady = true
    for (const { link, message } of this.#waiting.takeAll()) this.#take(link, message)
    if (before && introduction !== known) this.#announceChanges()
    return introduction
  }

  /** Called when the streams end. Pending requests are lost. */
  detached(why: string): void {
    this.#wire = undefined
    this.#isReady = false
    this.#requester.failAll(linkEnded(why))
    const lost = [...this.#sent.values()]
    this.#sent.clear()
    const error = new GatehouseError('BACKEND_UNREACHABLE', {
      detail: `the connection to the server was lost during the request (${why}); the request may have been executed and is not sent again`,
    })
    for (const { link, clientId } of lost) {
      link.inFlight.delete(clientId)
      link.answer(errorMessage(clientId, error))
    }
    if (lost.length > 0) this.#options.onLost?.(lost.length, why)
  }

  /** Ends all conversations. */
  close(): void {
    this.#waiting.refuseAll()
    for (const link of this.#links) link.end('the proxy is shutting down')
  }

  /** Handles a line that was too long. If the line was a response, its request fails. */
  skipped(ends: Buffer): void {
    for (const [found] of ends.toString('latin1').matchAll(new RegExp(`"${this.#prefix}\\d+"`, 'g'))) {
      const sent = this.#settle(found)
      sent?.link.answer(errorMessage(sent.clientId, new GatehouseError('BACKEND_RESULT_TOO_LARGE')))
    }
  }

  left(link: SharedLink): void {
    this.#links.delete(link)
    this.#waiting.leave(link)
    for (const id of link.inFlight.values()) {
      this.#sent.delete(id)
      this.#notify('notifications/cancelled', `{"requestId":${id},"reason":"the client disconnected"}`)
    }
    link.inFlight.clear()
    this.#state.leave(link)
  }

  fromClient(link: SharedLink, message: Message): void {
    if (message.kind === 'request') {
      if (this.#isReady) this.#take(link, message)
      else this.#waiting.add(link, message)
    } else if (message.method === 'notifications/cancelled') this.#cancel(link, message)
    // Ignores other notifications, which concern the client's own session, and responses, because the client got no
    // request.
  }

  #take(link: SharedLink, message: Message): void {
    try {
      if (link.over) return
      if (this.#introduction?.era === 'session') this.#takeInSession(link, message)
      else if (message.method === 'initialize') throw new GatehouseError('METHOD_NOT_FOUND')
      else this.#forward(link, message)
    } catch (error) {
      link.answer(errorMessage(message.id, error))
    }
  }

  #takeInSession(link: SharedLink, message: Message): void {
    const { id = '', method } = message
    if (method === 'initialize' && this.#initialized) {
      const version = paramsOf(message).text('protocolVersion')
      link.answer(resultMessage(id, introductionFor(this.#initialized, version)))
    } else if (method === 'server/discover' || method.startsWith('tasks/'))
      throw new GatehouseError('METHOD_NOT_FOUND')
    else if (!this.#state.take(link, message)) this.#forward(link, message)
  }

  #forward(link: SharedLink, message: Message): void {
    const { id: clientId = '', method } = message
    if (link.inFlight.has(clientId))
      throw new GatehouseError('INVALID_REQUEST', { detail: 'a request with this id is in flight' })
    if (link.inFlight.size >= maxInFlightOfOne)
      throw new GatehouseError('BACKEND_UNAVAILABLE', {
        detail: `${maxInFlightOfOne} requests of this session are in flight; try again later`,
      })
    if (this.#sent.size >= maxInFlight || (this.#wire?.unsent ?? 0) > maxUnsentBytes)
      throw new GatehouseError('BACKEND_UNAVAILABLE', {
        detail: 'the server is overloaded; try again later',
      })
    const id = `"${this.#prefix}${this.#nextId++}"`
    const params = paramsOf(message)
    const meta = params.object('_meta')
    const progressToken = meta?.raw('progressToken')?.toString()
    const own = meta && progressToken !== undefined
    const sent = own ? params.with({ _meta: meta.with({ progressToken: id }) }) : message.params
    this.#write(requestMessage(id, method, sent))
    const isSubscription = method === 'subscriptions/listen'
    this.#sent.set(id, { link, clientId, progressToken, isSubscription })
    link.inFlight.set(clientId, id)
  }

  #cancel(link: SharedLink, message: Message): void {
    const params = paramsOf(message)
    const clientId = params.raw('requestId')?.toString()
    const id = clientId === undefined ? undefined : link.inFlight.get(clientId)
    if (id === undefined) {
      this.#waiting.cancel(link, clientId)
      return
    }
    this.#settle(id)
    this.#notify(message.method, params.with({ requestId: id }))
  }

  /** Removes and returns a pending request. */
  #settle(id: string): Sent | undefined {
    const sent = this.#sent.get(id)
    if (!sent) return undefined
    this.#sent.delete(id)
    sent.link.inFlight.delete(sent.clientId)
    return sent
  }

  /** Handles every message from the server. */
  fromServer(message: Message): void {
    if (message.method === '') this.#response(message)
    else if (message.kind === 'request') this.#refuse(message)
    else if (message.method === 'notifications/progress') this.#progress(message)
    else if (message.method === 'notifications/message') this.#log(message)
    else this.#announce(message)
  }

  #response(message: Message): void {
    const { id } = message
    const sent = id === undefined ? undefined : this.#settle(id)
    if (sent && id !== undefined) sent.link.hand(this.#responseFor(sent, id, message))
    else if (id === undefined) this.#unreadable()
    else if (id.startsWith(`"${this.#prefix}`)) this.#requester.take(message)
    else this.foreign++
  }

  /**
   * Returns the server's response with the client's ids instead of `id`, or a BACKEND_PROTOCOL error when the result
   * cannot be read.
   */
  #responseFor({ clientId, isSubscription }: Sent, id: string, message: Message): Message {
    try {
      const { error } = message
      const result =
        isSubscription && message.result
          ? withClientSubscription(message.result, id, clientId)
          : message.result
      return { ...message, id: clientId, result, bytes: responseMessage(clientId, { result, error }) }
    } catch (cause) {
      this.#reportUnreadable(cause)
      return scanMessage(errorMessage(clientId, new GatehouseError('BACKEND_PROTOCOL', { cause })))
    }
  }

  /** The server could not parse a line. If only one request is pending, that request fails. */
  #unreadable(): void {
    const [only, another] = this.#sent.keys()
    const sent = only !== undefined && another === undefined ? this.#settle(only) : undefined
    const error = new GatehouseError('BACKEND_PROTOCOL', { detail: 'the server could not parse the request' })
    if (sent) sent.link.hand(scanMessage(errorMessage(sent.clientId, error)))
    else this.#options.log.warn('the server could not parse a line; its sender is unknown')
  }

  /** Rejects requests from the server, because several clients share it. */
  #refuse({ id = '', method }: Message): void {
    const isPing = method === 'ping'
    const error = new GatehouseError('METHOD_NOT_FOUND', { detail: 'several clients share this server' })
    this.#write(isPing ? resultMessage(id, '{}') : errorMessage(id, error))
  }

  #progress(message: Message): void {
    const params = paramsOf(message)
    const sent = this.#sent.get(params.raw('progressToken')?.toString() ?? '')
    if (sent?.progressToken === undefined) return
    const own = params.with({ progressToken: sent.progressToken })
    sent.link.hand(scanMessage(notificationMessage(message.method, own)))
  }

  /** Forwards a log message only when one client is waiting, because it may contain that client's data. */
  #log(message: Message): void {
    const busy = [...this.#links].filter((link) => link.inFlight.size > 0)
    const [only, another] = busy
    if (!only || another || !message.params) return
    if (passesLevel(message.params, only.level)) only.hand(message)
  }

  #announce(message: Message): void {
    const params = paramsOf(message)
    const sent = this.#sent.get(subscriptionOf(params) ?? '')
    if (sent) {
      const own = withSubscription(params, sent.clientId)
      sent.link.hand(scanMessage(notificationMessage(message.method, own)))
    } else if (message.method === 'notifications/cancelled') {
      const closed = this.#settle(params.raw('requestId')?.toString() ?? '')
      const own = closed && params.with({ requestId: closed.clientId })
      if (own) closed.link.hand(scanMessage(notificationMessage(message.method, own)))
    } else if (this.#introduction?.era === 'stateless') return
    else if (message.method === updatedMethod) {
      for (const link of this.#state.subscribersOf(params.text('uri') ?? '')) link.hand(message)
    } else if (changedList(message.method)) {
      for (const link of this.#links) link.hand(message)
    }
  }

  /** Announces list changes, because a restarted process may offer different items. */
  #announceChanges(): void {
    for (const kind of announcedLists(this.#initialized?.object('capabilities')))
      for (const link of this.#links) link.answer(notificationMessage(listChangedMethod(kind)))
  }

  #notify(method: string, params: Buffer | string): void {
    if (this.#wire) this.#write(notificationMessage(method, params))
  }

  #write(message: Buffer): void {
    if (!this.#wire) throw linkEnded('the proxy is not attached')
    this.#wire.write(lineOf(message))
  }
}

/** True when sessions that started with `before` cannot continue with `now`. */
function isOther(before: Introduction, now: Introduction): boolean {
  return before.era !== now.era || (now.era === 'session' && versionOf(before) !== versionOf(now))
}

function versionOf({ result }: Introduction): string | undefined {
  return new JsonObject(Buffer.from(result)).text('protocolVersion')
}
