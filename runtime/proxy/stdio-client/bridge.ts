/**
 * The raw bridge of `proxy stdio`: sends each input line to the server and writes each message from the server as one
 * output line, unchanged.
 *
 * Requests run concurrently, but none overtakes `initialize` and `notifications/initialized`. When the server has lost
 * the session, the bridge reopens it with the client's own initialize request and resends the failed request once.
 * Every failed request gets a JSON-RPC error with its id. A stateless request is cancelled by closing its stream.
 * Source: docs/reference/specification/proxy-command.md (`proxy stdio`); MCP 2025-11-25 and 2026-07-28, transports.
 */
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  emptyObject,
  type Era,
  errorMessage,
  mayEnterNextSession,
  type Message,
  MessageError,
  paramsOf,
  requestMessage,
  scanMessage,
  MirroredTools,
} from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import {
  type BridgedCall,
  eraOfMessage,
  isHeaderMismatch,
  isResponseTo,
  mirroredHeaders,
  BridgedSessionLost,
  type BridgeTransport,
  type TransportEvents,
} from './call.ts'
import type { EraTranslation } from './era-translation.ts'
import { longestRetryMs, maxMessageBytes } from './http.ts'
import { BridgedRequests } from './in-flight.ts'
import { LossPace } from './loss-pace.ts'
import { type LineWriter, readLines } from './lines.ts'
import { Oversize } from './oversize.ts'

export interface ClientBridgeOptions {
  readonly input: Readable
  readonly writer: LineWriter
  readonly transport: (events: TransportEvents) => BridgeTransport
  readonly log: Log
  /** Ends the bridge, without waiting for responses. */
  readonly signal: AbortSignal
  /** How long to wait for pending responses after the input ends. */
  readonly drainMs: number
  /** Translates messages for a server of the other protocol era. If absent, all messages are forwarded unchanged. */
  readonly eras?: EraTranslation
}

const maxPages = 50
const endedEarly = new GatehouseError('BACKEND_UNREACHABLE', {
  detail: 'the connection to the server ended before the response',
})

export class RawBridge {
  readonly #options: ClientBridgeOptions
  readonly #transport: BridgeTransport
  readonly #inFlight = new BridgedRequests()
  readonly #tools = new MirroredTools()
  readonly #stop = new AbortController()
  #barrier: Promise<void> = Promise.resolve()
  #era: Era = 'session'
  #initialize: Message | undefined
  #initialized: Message | undefined
  #reopening: Promise<boolean> | undefined
  /** True when the session is lost and has not been reopened yet. */
  #lost = false
  /** Number of the current session, so that a loss noticed late does not affect the next session. */
  #generation = 0
  readonly #pace = new LossPace()
  #nextOwnId = 1
  /** Set after the server's first response. */
  #reached = false
  /** True when the bridge ended because the first message did not reach the server. */
  unreachable = false
  /** The error for requests that are still pending when the bridge ends. */
  #endReason: Error = endedEarly

  constructor(options: ClientBridgeOptions) {
    this.#options = options
    this.#transport = options.transport({
      onMessage: (message) => this.#write(message.bytes),
      onLost: () => void this.#keepReopening(),
    })
  }

  /** Runs until the input ends, the output closes, the signal fires, or the first message cannot be delivered. */
  async run(): Promise<void> {
    const { input, writer, signal } = this.#options
    const stop = (): void => this.#stop.abort()
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    void writer.closed.then(stop)
    this.#stop.signal.addEventListener('abort', () => input.destroy(), { once: true })
    if (this.#stop.signal.aborted) input.destroy()
    try {
      for await (const line of readLines(input, maxMessageBytes)) await this.#accept(line)
      await this.#drain()
    } catch (error) {
      // Destroying the input ends the loop above.
      if (!this.#stop.signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', stop)
      this.#stop.abort()
      // Conversations in the other protocol era answer their pending requests themselves.
      await this.#options.eras?.close()
      await this.#inFlight.cutOff(this.#endReason)
      await this.#transport.close()
    }
  }

  /** Waits for pending responses at the end of the input, up to the limit. */
  async #drain(): Promise<void> {
    const enough = new AbortController()
    const signal = AbortSignal.any([enough.signal, this.#stop.signal])
    const limit = sleep(this.#options.drainMs, undefined, { signal }).catch(() => undefined)
    await Promise.race([this.#inFlight.settled(), limit])
    enough.abort()
  }

  async #write(message: Buffer): Promise<void> {
    await this.#options.writer.write(message)
  }

  /** Processes one line. Resolves when the next line can be read. */
  async #accept(line: Buffer | Oversize): Promise<void> {
    try {
      if (line instanceof Oversize) {
        throw new MessageError('INVALID_REQUEST', line.id, {
          detail: `Invalid Request: the message is too large (at most ${maxMessageBytes} bytes)`,
        })
      }
      const message = scanMessage(line, { dropNulls: true })
      if (message.kind === 'notification' && this.#cancel(message)) return
      const era = eraOfMessage(message, this.#era)
      if (message.kind === 'request') {
        this.#era = era
        this.#startRequest(message, era)
      } else await this.#startOther(message, era)
    } catch (error) {
      await this.#write(errorMessage(error instanceof MessageError ? error.id : undefined, error))
    }
  }

  #startRequest(message: Message, era: Era): void {
    const refusal = this.#inFlight.refusal(message)
    if (refusal !== undefined) throw new MessageError('INVALID_REQUEST', message.id, { detail: refusal })
    const before = this.#barrier
    const cancel = new AbortController()
    const run = async (): Promise<void> => {
      await before
      await this.#request(message, era, cancel.signal)
    }
    const done = run()
    this.#inFlight.request(message, { era, cancel, isCancelled: false }, done)
    if (message.method === 'initialize') this.#barrier = done
  }

  async #startOther(message: Message, era: Era): Promise<void> {
    const before = this.#barrier
    const send = async (): Promise<void> => {
      await before
      await this.#notify(message, era)
    }
    const done = send()
    if (message.method === 'notifications/initialized') this.#barrier = done
    await this.#inFlight.other(done)
  }

  /** Closes a stateless request's stream, which cancels the request. Returns true if nothing needs to be sent. */
  #cancel(message: Message): boolean {
    if (message.method !== 'notifications/cancelled') return false
    const id = paramsOf(message).raw('requestId')?.toString()
    const found = id === undefined ? undefined : this.#inFlight.find(id)
    if (found) found.isCancelled = true
    if (found?.era === 'stateless') found.cancel.abort()
    return (found?.era ?? this.#era) === 'stateless'
  }

  /** Resolves when the request is answered or cancelled. Does not wait for its stream to end. Never rejects. */
  #request(message: Message, era: Era, signal: AbortSignal): Promise<void> {
    const { eras } = this.#options
    if (signal.aborted) return this.#answerAborted(message, signal)
    const translated = eras?.carry(message, era, signal)
    if (translated) return translated
    const { promise, resolve } = Promise.withResolvers<void>()
    let responded = false
    const onMessage = async (received: Message): Promise<void> => {
      const isResponse = isResponseTo(received, message.id)
      if (isResponse && responded) return
      responded ||= isResponse
      if (isResponse) await this.#note(message, received, era)
      const done = isResponse && (await eras?.takeOver(message, received, era, signal)) === true
      if (!done) await this.#write(received.bytes)
      if (isResponse) resolve()
    }
    this.#deliver(message, era, signal, onMessage)
      .catch(async (error: unknown) => {
        if (responded) return
        if (signal.aborted) return this.#answerAborted(message, signal)
        const response = errorMessage(message.id, this.#errorOf(message, error))
        const isOver = this.unreachable || this.#stop.signal.aborted
        const done = !isOver && (await eras?.takeOver(message, scanMessage(response), era, signal)) === true
        if (!done) await this.#write(response)
        if (this.unreachable) this.#stop.abort()
      })
      .finally(() => {
        if (!responded) resolve()
      })
    return promise
  }

  /**
   * Answers a request with an error if the bridge ends before the response arrives. A cancelled request gets no
   * response.
   */
  async #answerAborted({ id }: Message, { reason }: AbortSignal): Promise<void> {
    if (reason === this.#endReason) await this.#write(errorMessage(id, reason))
  }

  async #notify(message: Message, era: Era): Promise<void> {
    try {
      const translated = this.#options.eras?.carry(message, era)
      if (translated) return await translated
      await this.#deliver(message, era, this.#stop.signal, (received) => this.#write(received.bytes))
      if (message.method !== 'notifications/initialized') return
      this.#initialized = message
      this.#transport.listen()
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#errorOf(message, error)
      if (this.unreachable) this.#stop.abort()
    }
  }

  /** Logs a failure, and records whether the very first message failed to reach the server. */
  #errorOf({ method }: Message, error: unknown): unknown {
    const failure = error instanceof BridgedSessionLost ? new GatehouseError('SESSION_NOT_FOUND') : error
    this.#options.log.warn('a message failed', { method, err: failure })
    const isUnreachable = failure instanceof GatehouseError && failure.code === 'BACKEND_UNREACHABLE'
    if (isUnreachable && !this.#reached) {
      this.unreachable = true
      this.#endReason = failure
    }
    return failure
  }

  /** Records data from a request and its response that later messages need. */
  async #note(message: Message, response: Message, era: Era): Promise<void> {
    if (!response.result) return
    if (message.method === 'initialize') {
      this.#initialize = message
      this.#generation++
      this.#lost = false
    }
    if (message.method === 'tools/list' && era === 'stateless') await this.#tools.readPage(response.result)
  }

  /** Sends a message. Resends the message once after a lost session or mismatched mirrored arguments. */
  async #deliver(
    message: Message,
    era: Era,
    signal: AbortSignal,
    onMessage: (message: Message) => Promise<void>,
  ): Promise<void> {
    const generation = this.#generation
    if (this.#lost && era === 'session' && message.method !== 'initialize') {
      if (!(await this.#reopen(generation))) throw new BridgedSessionLost()
    }
    const call = (): BridgedCall => ({
      message,
      era,
      headers: mirroredHeaders(message, era, this.#tools),
      signal,
      onMessage,
    })
    try {
      if (message.method === 'tools/call' && era === 'stateless') await this.#callTool(call())
      else await this.#send(call())
    } catch (error) {
      if (!(error instanceof BridgedSessionLost) || message.method === 'initialize') throw error
      if (!(await this.#reopen(generation))) throw error
      if (mayEnterNextSession(message)) await this.#send(call())
    }
  }

  async #send(call: BridgedCall): Promise<void> {
    await this.#transport.deliver({
      ...call,
      onMessage: (message) => {
        this.#reached = true
        return call.onMessage(message)
      },
    })
    this.#reached = true
  }

  /** Calls a tool. When the server rejects unknown or changed mirrored arguments, lists the tools again and retries. */
  async #callTool(call: BridgedCall): Promise<void> {
    let refused: Message | undefined
    await this.#send({
      ...call,
      async onMessage(message) {
        if (isResponseTo(message, call.message.id) && isHeaderMismatch(message)) refused = message
        else await call.onMessage(message)
      },
    })
    if (!refused) return
    await this.#listTools(call)
    const headers = mirroredHeaders(call.message, call.era, this.#tools)
    if (headers.join('\0') === call.headers.join('\0')) await call.onMessage(refused)
    else await this.#send({ ...call, headers })
  }

  async #listTools({ message, signal }: BridgedCall): Promise<void> {
    const meta = paramsOf(message).object('_meta')?.with({ progressToken: undefined }) ?? '{}'
    let cursor: string | undefined
    for (let page = 0; page < maxPages; page++) {
      const params = emptyObject.with({
        _meta: meta,
        ...(cursor === undefined ? {} : { cursor: JSON.stringify(cursor) }),
      })
      const own = scanMessage(requestMessage(`"gatehouse-${this.#nextOwnId++}"`, 'tools/list', params))
      cursor = undefined
      await this.#send({
        message: own,
        era: 'stateless',
        headers: mirroredHeaders(own, 'stateless', this.#tools),
        signal,
        onMessage: async (received) => {
          if (isResponseTo(received, own.id) && received.result)
            cursor = await this.#tools.readPage(received.result)
        },
      })
      if (cursor === undefined) return
    }
  }

  /** Reopens the session once for all requests that lost it. Returns false on failure. */
  #reopen(generation: number): Promise<boolean> {
    if (this.#generation !== generation) return Promise.resolve(true)
    this.#reopening ??= this.#initializeAgain()
      .catch((error: unknown) => {
        this.#options.log.warn('reopening the session failed', { err: error })
        return false
      })
      .finally(() => {
        this.#reopening = undefined
      })
    return this.#reopening
  }

  async #initializeAgain(): Promise<boolean> {
    const initialize = this.#initialize
    if (!initialize) return false
    this.#transport.forget()
    this.#lost = true
    let opened = false
    const call = { era: 'session', headers: [], signal: this.#stop.signal } as const
    await this.#send({
      ...call,
      message: initialize,
      // The client already has its response.
      onMessage: async (message) => {
        if (!isResponseTo(message, initialize.id)) await this.#write(message.bytes)
        else opened = message.result !== undefined
      },
    })
    if (!opened) return false
    if (this.#initialized) {
      await this.#send({ ...call, message: this.#initialized, onMessage: async () => {} })
      this.#transport.listen()
    }
    this.#generation++
    this.#lost = false
    this.#pace.opened()
    this.#options.log.info('session reopened')
    return true
  }

  /** Reopens a session whose connection broke, so that unsolicited messages from the server still arrive. */
  async #keepReopening(): Promise<void> {
    // A message that arrives before the session is reopened must not be sent without a session.
    this.#lost = this.#initialize !== undefined
    const generation = this.#generation
    const { signal } = this.#stop
    await sleep(this.#pace.lost(), undefined, { signal }).catch(() => undefined)
    let waitMs = 500
    while (!signal.aborted && this.#initialize) {
      if (await this.#reopen(generation)) return
      await sleep(waitMs, undefined, { signal }).catch(() => undefined)
      waitMs = Math.min(waitMs * 2, longestRetryMs)
    }
  }
}
