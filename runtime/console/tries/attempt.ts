/**
 * One attempt to call a tool: the call, its progress, and the server's questions to the user. Events wait for the page;
 * their number and total size are limited. Progress and log events are dropped first; the final event is always kept.
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Ask, type AskReply, JsonObject } from '../../mcp/index.ts'
import { type PolicyRecord, redactText } from '../../observe/index.ts'
import type { AskAnswer, CallResultKind, TryEvent, TryRequest } from '../api.ts'
import { deniedBy } from '../calls/call-of.ts'
import { given } from '../data/pages.ts'
import type { ConsoleView, Tried } from '../view.ts'
import type { Visitor } from '../access/visitor.ts'

const maxMs = 15 * 60_000
/** Maximum time without activity. */
const quietMs = 2 * 60_000
const maxEvents = 200
const maxLogText = 4_096
const maxResultText = 256 * 1024
const maxAsks = 16
const maxSchemaBytes = 64 * 1024
const maxUrl = 8_192

export class Attempt {
  readonly id = randomUUID()
  readonly owner: string
  /** Resolves when the call has ended. */
  readonly ended: Promise<void>
  readonly #controller = new AbortController()
  readonly #startedAt = performance.now()
  readonly #asks = new Map<string, (reply: AskReply) => void>()
  readonly #events: TryEvent[] = []
  #listener: (() => void) | undefined
  #quiet: NodeJS.Timeout | undefined
  #backend = ''
  #policy: PolicyRecord | undefined
  #isDone = false

  constructor(view: ConsoleView, visitor: Visitor, request: TryRequest, onDone: (tried: Tried) => void) {
    this.owner = visitor.caller.key
    const limit = setTimeout(() => this.cancel('the try took longer than 15 minutes'), maxMs).unref()
    this.#awake()
    this.ended = this.#run(view, visitor, request)
      .then(({ denied, ...end }) => {
        const ms = Math.round((performance.now() - this.#startedAt) * 10) / 10
        this.#isDone = true
        this.#push({ type: 'done', ms, ...end })
        onDone({
          request,
          caller: visitor.caller,
          backend: this.#backend,
          policy: this.#policy,
          ms,
          denied,
          ...end,
        })
      })
      .finally(() => {
        clearTimeout(limit)
        clearTimeout(this.#quiet)
      })
  }

  get isDone(): boolean {
    return this.#isDone
  }

  cancel(why = 'cancelled'): void {
    this.#controller.abort(new Error(why))
  }

  /** Answers an open question. Throws NOT_FOUND when the question is not open. */
  answer(id: string, { action, content }: AskAnswer): void {
    const resolve = this.#asks.get(id)
    if (!resolve) throw new GatehouseError('NOT_FOUND', { detail: 'this question is no longer open' })
    this.#asks.delete(id)
    const given = action === 'accept' && content !== undefined ? `,"content":${content}` : ''
    resolve({ result: Buffer.from(`{"action":"${action}"${given}}`) })
  }

  /** Removes and returns the oldest waiting event. */
  take(): TryEvent | undefined {
    return this.#events.shift()
  }

  get isRead(): boolean {
    return this.#listener !== undefined
  }

  /** Sets the only listener for new events, because there is at most one reader. */
  onEvents(listener: (() => void) | undefined): void {
    this.#listener = listener
  }

  async #run(view: ConsoleView, visitor: Visitor, request: TryRequest): Promise<End> {
    try {
      const { kind, json, denial } = await view.call({
        caller: visitor.caller,
        tool: request.name,
        toolArguments: Buffer.from(request.arguments),
        era: request.era === '2026-07-28' ? 'stateless' : 'session',
        signal: this.#controller.signal,
        progress: (params) => this.#progress(params),
        log: (params) => this.#log(params),
        routed: (backend) => (this.#backend = backend),
        decided: (policy) => (this.#policy = policy),
        ask: (question, signal) => this.#ask(question, signal),
      })
      if (kind === 'error') return { outcome: 'failure', error: errorIn(json) }
      const text = json.toString('utf8', 0, maxResultText)
      const isTruncated = json.length > maxResultText
      const result = { result: text, ...(isTruncated ? { truncated: true } : {}) }
      const denied = deniedBy(denial, undefined)
      if (denied) return { outcome: 'denied', denied, ...result }
      return { outcome: new JsonObject(json).value('isError') === true ? 'failure' : 'success', ...result }
    } catch (error) {
      if (this.#controller.signal.aborted) return { outcome: 'cancelled' }
      return failureOf(error)
    }
  }

  #progress(params: Buffer): void {
    this.#awake()
    const read = new JsonObject(params)
    const progress: unknown = read.value('progress')
    const total: unknown = read.value('total')
    this.#push({
      type: 'progress',
      progress: typeof progress === 'number' ? progress : 0,
      ...given('total', typeof total === 'number' ? total : undefined),
      ...given('message', read.text('message')?.slice(0, maxLogText)),
    })
  }

  #log(params: Buffer): void {
    this.#awake()
    const read = new JsonObject(params)
    const text = read.text('data') ?? read.raw('data')?.toString('utf8', 0, 4 * maxLogText) ?? ''
    this.#push({
      type: 'log',
      level: (read.text('level') ?? 'info').slice(0, 16),
      text: text.slice(0, maxLogText),
    })
  }

  async #ask({ method, params }: Ask, signal: AbortSignal): Promise<AskReply> {
    if (method !== 'elicitation/create' || !params || this.#asks.size >= maxAsks)
      throw new GatehouseError('CAPABILITY_REQUIRED', { detail: 'the console supports only elicitation' })
    const read = new JsonObject(params)
    const id = randomUUID()
    const mode = read.text('mode') === 'url' ? 'url' : 'form'
    const schema = read.raw('requestedSchema')
    const url = mode === 'url' ? read.text('url') : undefined
    if ((schema?.length ?? 0) > maxSchemaBytes || (url?.length ?? 0) > maxUrl)
      throw new GatehouseError('CAPABILITY_REQUIRED', {
        detail: `the console only shows questions whose schema is at most ${maxSchemaBytes} bytes and whose url is at most ${maxUrl} characters`,
      })
    clearTimeout(this.#quiet)
    const reply = new Promise<AskReply>((resolve, reject) => {
      this.#asks.set(id, resolve)
      signal.addEventListener('abort', () => {
        this.#asks.delete(id)
        this.#drop((event) => event.type === 'ask' && event.id === id)
        reject(new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the question was not answered' }))
      })
    })
    this.#push({
      type: 'ask',
      id,
      backend: this.#backend,
      message: (read.text('message') ?? '').slice(0, maxLogText),
      mode,
      ...given('schema', schema?.toString()),
      ...given('url', url),
    })
    return reply.finally(() => this.#awake())
  }

  /** Restarts the idle timer on any activity, but not the total time limit. */
  #awake(): void {
    clearTimeout(this.#quiet)
    this.#quiet = setTimeout(() => this.cancel('the tool sent nothing for 2 minutes'), quietMs).unref()
  }

  #push(event: TryEvent): void {
    if (this.#events.length >= maxEvents) this.#drop(({ type }) => type === 'progress' || type === 'log')
    this.#events.push(event)
    this.#listener?.()
  }

  /** Removes the oldest unread event that matches. */
  #drop(isMeant: (event: TryEvent) => boolean): void {
    const at = this.#events.findIndex(isMeant)
    if (at >= 0) this.#events.splice(at, 1)
  }
}

type End = Pick<Extract<TryEvent, { type: 'done' }>, 'outcome' | 'result' | 'truncated' | 'error'> &
  Pick<Tried, 'denied'>

function errorIn(json: Buffer): { code?: number; message: string } {
  const error = new JsonObject(json)
  const code: unknown = error.value('code')
  return {
    ...given('code', typeof code === 'number' ? code : undefined),
    message: redactText(error.text('message') ?? 'the tool failed').slice(0, maxLogText),
  }
}

function failureOf(error: unknown): End {
  if (!(error instanceof GatehouseError)) return { outcome: 'error', error: { message: 'the call failed' } }
  const denied = deniedBy(undefined, error.code)
  const outcome: CallResultKind = denied ? 'denied' : error.status < 500 ? 'failure' : 'error'
  return { outcome, denied, error: { code: error.rpcCode, message: error.message } }
}
