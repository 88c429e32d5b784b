/**
 * Keeps one `subscriptions/listen` stream to a stateless backend open and forwards its notifications. When the filter
 * changes, opens a new stream before the old stream ends, so no notification is lost.
 * Source: MCP 2026-07-28, patterns/subscriptions.
 */
import { pause, retryAfterOf, StreamPace, type StreamWishes } from '../../../net/index.ts'
import {
  changedList,
  filterText,
  headerName,
  JsonObject,
  type Message,
  requestMessage,
  requestMeta,
  statelessVersion,
  updatedMethod,
} from '../../../mcp/index.ts'
import type { ChannelTarget, Sender } from '../transport/target.ts'
import type { ListKind } from '../connection.ts'
import { receiveEvent, streamReports } from '../transport/read-message.ts'
import { sendToBackend } from '../transport/send.ts'
import { isTemporary } from '../transport/status-error.ts'

export interface ListenerEvents {
  listChanged(kind: ListKind): void
  resourceUpdated(params: Buffer): void
}

export interface StatelessListenerOptions {
  readonly target: ChannelTarget
  readonly info: string
  readonly capabilities: Buffer
  readonly events: ListenerEvents
}

interface StreamHooks {
  readonly onStream: () => void
  readonly onRetry: (retryMs: number) => void
  readonly onAcknowledged: () => void
}

export class StatelessListener {
  readonly #options: StatelessListenerOptions
  readonly #uris = new Set<string>()
  #kinds: ReadonlySet<ListKind> = new Set()
  #current: AbortController | undefined
  /** The sender of the latest request, whose token is the newest. */
  #sender: Sender | undefined
  #nextId = 1
  #closed = false

  constructor(options: StatelessListenerOptions) {
    this.#options = options
  }

  /** Selects the lists for which the backend announces changes. */
  watchLists(kinds: ReadonlySet<ListKind>, sender: Sender): void {
    this.#kinds = kinds
    void this.#reopen(sender)
  }

  /** Sets the sender for the next stream. The new sender has the same identity as the previous sender. */
  renew(sender: Sender): void {
    this.#sender = sender
  }

  /**
   * Adds a resource to the filter. Resolves when the backend has acknowledged the filter or turns out to be
   * unreachable.
   */
  addResource(uri: string, sender: Sender): Promise<void> {
    this.renew(sender)
    if (this.#uris.has(uri)) return Promise.resolve()
    this.#uris.add(uri)
    return this.#reopen(sender)
  }

  async removeResource(uri: string, sender: Sender): Promise<void> {
    if (this.#uris.delete(uri)) await this.#reopen(sender)
  }

  close(): void {
    this.#closed = true
    this.#current?.abort(new Error('closed'))
  }

  #reopen(sender: Sender): Promise<void> {
    this.renew(sender)
    const before = this.#current
    if (this.#closed) return Promise.resolve()
    if (this.#uris.size === 0 && this.#kinds.size === 0) {
      before?.abort(new Error('the filter is empty'))
      this.#current = undefined
      return Promise.resolve()
    }
    const controller = new AbortController()
    this.#current = controller
    return new Promise((resolve) => {
      const settled = (): void => {
        before?.abort(new Error('replaced'))
        resolve()
      }
      void this.#hold(sender, controller.signal, settled).finally(settled)
    })
  }

  /**
   * Keeps the stream open while the filter is not empty and the backend offers a stream. Reopens the stream after
   * increasing pauses.
   */
  async #hold(sender: Sender, signal: AbortSignal, settled: () => void): Promise<void> {
    const pace = new StreamPace(streamReports(this.#options.target))
    signal.addEventListener('abort', () => pace.close(), { once: true })
    let hasGap = false
    while (!signal.aborted) {
      const wishes: StreamWishes = {}
      try {
        const streamed = await this.#listen(this.#sender ?? sender, signal, {
          onStream: () => pace.opened(),
          onRetry: (retryMs) => {
            wishes.retryMs = retryMs
          },
          onAcknowledged: () => {
            settled()
            if (hasGap) this.#catchUp()
            hasGap = false
          },
        })
        if (!streamed) return
        wishes.retryAfterMs = streamed.retryAfterMs
      } catch {
        // The loop retries below.
      }
      settled()
      hasGap = true
      await pause(pace.ended(wishes), signal).catch(() => {})
    }
  }

  /** Reports everything in the filter as changed, because notifications were lost while the stream was down. */
  #catchUp(): void {
    const { events } = this.#options
    for (const kind of this.#kinds) events.listChanged(kind)
    for (const uri of this.#uris) events.resourceUpdated(Buffer.from(JSON.stringify({ uri })))
  }

  /**
   * Reads one stream until it ends. Returns undefined if the backend offers no stream. In that case, a retry would not
   * help.
   */
  async #listen(
    sender: Sender,
    signal: AbortSignal,
    { onAcknowledged, ...hooks }: StreamHooks,
  ): Promise<Pick<StreamWishes, 'retryAfterMs'> | undefined> {
    const { target, info, capabilities } = this.#options
    const filter = filterText({ kinds: this.#kinds, uris: this.#uris })
    const id = this.#nextId++
    const body = requestMessage(
      id,
      'subscriptions/listen',
      `{"_meta":${requestMeta(info, capabilities)},"notifications":${filter}}`,
    )
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      [headerName.protocolVersion]: statelessVersion,
      [headerName.method]: 'subscriptions/listen',
    }
    const response = await sendToBackend(target, sender, {
      method: 'POST',
      headers,
      body,
      signal,
      ...hooks,
      onEvent: (event) => receiveEvent(event, target, (message) => this.#receive(message, onAcknowledged)),
    })
    if (!response.stream && !isTemporary(response.status)) return undefined
    return { retryAfterMs: retryAfterOf(response.headers['retry-after']) }
  }

  #receive({ method, params }: Message, onAcknowledged: () => void): void {
    const { events } = this.#options
    if (method === 'notifications/subscriptions/acknowledged') onAcknowledged()
    else if (method === updatedMethod && params) {
      if (this.#uris.has(new JsonObject(params).text('uri') ?? '')) events.resourceUpdated(params)
    } else {
      const kind = changedList(method)
      if (kind) events.listChanged(kind)
    }
  }
}
