/**
 * Tool calls that users try from the console. Each call runs as the signed-in visitor, and only this visitor can
 * follow, answer and cancel it. Tries are limited per visitor and in total; an abandoned try is cancelled.
 * Source: HTML Standard, server-sent events.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { registerStream } from '../../net/index.ts'
import type { AskAnswer, TryRequest } from '../api.ts'
import type { ApiRequest } from '../http/api-route.ts'
import type { ConsoleView, Tried } from '../view.ts'
import { Attempt } from './attempt.ts'

const maxPerVisitor = 4
const maxAll = 64
/** Time for which the result of a try is kept for its reader. */
const unreadMs = 60_000
const eras: ReadonlySet<string> = new Set<TryRequest['era']>(['2025-11-25', '2026-07-28'])
const actions: ReadonlySet<string> = new Set<AskAnswer['action']>(['accept', 'decline', 'cancel'])

export class Tries {
  readonly #view: ConsoleView
  readonly #onDone: (tried: Tried) => void
  readonly #attempts = new Map<string, Attempt>()

  constructor(view: ConsoleView, onDone: (tried: Tried) => void) {
    this.#view = view
    this.#onDone = onDone
  }

  /** Throws BAD_REQUEST or TOO_MANY_TRIES. */
  start({ visitor, body }: ApiRequest): { id: string } {
    const request = readTry(body)
    const own = [...this.#attempts.values()].filter(({ owner }) => owner === visitor.caller.key)
    if (own.filter(({ isDone }) => !isDone).length >= maxPerVisitor)
      throw new GatehouseError('TOO_MANY_TRIES')
    // Removes finished tries that were never read, to make room for new tries.
    if (own.length >= maxPerVisitor) {
      const ended = own.find(({ isDone }) => isDone)
      if (ended) this.#attempts.delete(ended.id)
    }
    if (this.#attempts.size >= maxAll) throw new GatehouseError('TOO_MANY_TRIES')
    const attempt = new Attempt(this.#view, visitor, request, this.#onDone)
    this.#attempts.set(attempt.id, attempt)
    void attempt.ended.then(() => {
      setTimeout(() => this.#attempts.delete(attempt.id), unreadMs).unref()
    })
    return { id: attempt.id }
  }

  /** Returns a try. Throws NOT_FOUND, including for another visitor's try. */
  #find({ visitor, names }: ApiRequest): Attempt {
    const attempt = this.#attempts.get(names[0] ?? '')
    if (attempt?.owner !== visitor.caller.key)
      throw new GatehouseError('NOT_FOUND', { detail: 'unknown try' })
    return attempt
  }

  cancel(request: ApiRequest): undefined {
    this.#find(request).cancel()
  }

  /** Throws NOT_FOUND or BAD_REQUEST. */
  answer(request: ApiRequest): undefined {
    this.#find(request).answer(request.names[1] ?? '', readAnswer(request.body))
  }

  /**
   * Sends a try's events until it ends, as fast as the page reads them. Throws TRY_IS_READ when another page is reading
   * the events.
   */
  events(request: ApiRequest): void {
    const attempt = this.#find(request)
    if (attempt.isRead) throw new GatehouseError('TRY_IS_READ')
    const { res } = request.exchange
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
    res.flushHeaders()
    const send = (): void => {
      while (!res.writableNeedDrain && !res.writableEnded) {
        const event = attempt.take()
        if (!event) return
        res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
        if (event.type !== 'done') continue
        this.#attempts.delete(attempt.id)
        res.end()
      }
    }
    attempt.onEvents(send)
    registerStream(res, () => res.end())
    res.on('drain', send)
    res.once('close', () => {
      attempt.onEvents(undefined)
      // The page has disconnected.
      attempt.cancel()
    })
    send()
  }

  close(): void {
    for (const attempt of this.#attempts.values()) attempt.cancel()
  }
}

function readTry(body: unknown): TryRequest {
  const { name, arguments: typed, era } = membersOf(body)
  if (typeof name !== 'string' || name === '') throw invalid('name must be the name of a tool')
  if (typeof typed !== 'string' || !isObject(typed))
    throw invalid('arguments must be a JSON object, serialized as text')
  if (typeof era !== 'string' || !eras.has(era)) throw invalid(`era must be one of ${[...eras].join(', ')}`)
  return { name, arguments: typed, era: era as TryRequest['era'] }
}

function readAnswer(body: unknown): AskAnswer {
  const { action, content } = membersOf(body)
  if (typeof action !== 'string' || !actions.has(action))
    throw invalid(`action must be one of ${[...actions].join(', ')}`)
  if (content !== undefined && (typeof content !== 'string' || !isObject(content)))
    throw invalid('content must be a JSON object, serialized as text')
  return { action: action as AskAnswer['action'], ...(content === undefined ? {} : { content }) }
}

function membersOf(body: unknown): Record<string, unknown> {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('the body must be a JSON object')
  return body as Record<string, unknown>
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

function invalid(detail: string): GatehouseError {
  return new GatehouseError('BAD_REQUEST', { detail })
}
