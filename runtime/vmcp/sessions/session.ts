/**
 * One client session of the session era: what was negotiated, what is in flight, and the ways to reach the client.
 *
 * Messages that belong to no request wait, bounded, for the client's GET stream. A question goes out on the stream of
 * the operation that caused it, or on the GET stream, and is answered by a later POST.
 * Source: MCP 2025-11-25, lifecycle, transports.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  encodeEvent,
  JsonObject,
  KEEP_ALIVE,
  LOG_LEVELS,
  META,
  type Message,
  notificationMessage,
  requestMessage,
} from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import { writeBounded } from '../edge/reply.ts'
import type { Ask, AskReply, BackendSession, ClientAbilities, ClientSession } from '../operation.ts'

/** Limits of one session. */
const MAX_STREAMS = 4
const MAX_WAITING = 256
const MAX_WAITING_BYTES = 4 * 1024 * 1024
const MAX_QUESTIONS = 64
export const MAX_IN_FLIGHT = 256
export const MAX_SUBSCRIPTIONS = 1_000
/** How long a client may take to answer a question. */
export const ASK_TIMEOUT_MS = 10 * 60_000

export interface SessionFacts {
  readonly id: string
  /** Whom the session belongs to (`Caller.key`). */
  readonly owner: string
  readonly protocolVersion: string
  readonly abilities: ClientAbilities
  readonly info: Buffer | undefined
}

interface Question {
  resolve(reply: AskReply): void
  reject(error: Error): void
}

export class Session implements ClientSession {
  readonly facts: SessionFacts
  /** The caller of the latest request: its token is the freshest. */
  caller: Caller
  /** Passed-through headers of the latest request. */
  headers: Readonly<Record<string, string>> = {}
  /** Set by `logging/setLevel`; undefined: the backend's own choice. */
  logLevel: string | undefined
  usedAt = 0
  /** True until the subscriptions of a session from another replica are renewed here. */
  restored = false
  /** Requests in flight by raw id; the function cancels. */
  readonly inFlight = new Map<string, (reason: Error) => void>()
  /** Subscribed resources and the backend of each. */
  readonly subscriptions = new Map<string, string>()
  /** Sessions that backends keep for this one. */
  readonly backendSessions = new Map<string, BackendSession>()
  /** Told when what other replicas must know has changed. */
  onChange: (() => void) | undefined
  /** Digests of what the client has seen, by kind. */
  seen: Readonly<Record<string, string>> | undefined
  readonly #streams = new Set<ServerResponse>()
  readonly #questions = new Map<string, Question>()
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #nextQuestion = 1

  constructor(facts: SessionFacts, caller: Caller) {
    this.facts = facts
    this.caller = caller
  }

  get id(): string {
    return this.facts.id
  }

  get idle(): boolean {
    return this.inFlight.size === 0 && this.#streams.size === 0
  }

  /** Takes a GET stream (headers sent already) and gives it what has waited. */
  addStream(res: ServerResponse): void {
    if (this.#streams.size >= MAX_STREAMS) {
      const [oldest] = this.#streams
      oldest?.end()
    }
    this.#streams.add(res)
    res.once('close', () => this.#streams.delete(res))
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    for (const event of waiting) writeBounded(res, event)
  }

  keepAlive(): void {
    for (const stream of this.#streams) writeBounded(stream, KEEP_ALIVE)
  }

  /** Sends a message on one GET stream, or keeps it until there is one; the oldest make room. */
  push(message: Buffer): void {
    const event = encodeEvent(message)
    const stream = [...this.#streams].at(-1)
    if (stream && writeBounded(stream, event)) return
    this.#waiting.push(event)
    this.#waitingBytes += event.length
    while (this.#waiting.length > MAX_WAITING || this.#waitingBytes > MAX_WAITING_BYTES) {
      this.#waitingBytes -= this.#waiting.shift()?.length ?? 0
    }
  }

  deliver(_backend: string, method: string, params: Buffer | undefined): void {
    if (method === 'notifications/message') {
      if (params && passesLevel(params, this.logLevel)) this.push(notificationMessage(method, params))
    } else if (method === 'notifications/resources/updated') {
      if (params) this.#updated(new JsonObject(params))
    } else if (method === 'notifications/elicitation/complete') this.push(notificationMessage(method, params))
  }

  resume(backend: string): BackendSession | undefined {
    return this.backendSessions.get(backend)
  }

  opened(backend: string, session: BackendSession): void {
    this.backendSessions.set(backend, session)
    this.onChange?.()
  }

  #updated(params: JsonObject): void {
    if (!this.subscriptions.has(params.text('uri') ?? '')) return
    // A stateless backend's subscription id is between it and us.
    const foreign = params.object('_meta')?.raw(META.subscriptionId) !== undefined
    this.push(
      notificationMessage(
        'notifications/resources/updated',
        foreign ? params.with({ _meta: undefined }) : params.bytes,
      ),
    )
  }

  ask(request: Ask, signal: AbortSignal): Promise<AskReply> {
    return this.askBy(
      (message) => {
        this.push(message)
        return true
      },
      request,
      signal,
    )
  }

  /** Sends a question with `send` and waits for the POST that answers it. `signal` withdraws it. */
  askBy(send: (message: Buffer) => boolean, request: Ask, signal: AbortSignal): Promise<AskReply> {
    requireAbility(this.facts.abilities, request)
    if (signal.aborted) return Promise.reject(withdrawn())
    if (this.#questions.size >= MAX_QUESTIONS) {
      return Promise.reject(new GatehouseError('RATE_LIMITED', { detail: 'too many questions at a time' }))
    }
    const id = String(this.#nextQuestion++)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => fail(new GatehouseError('BACKEND_TIMEOUT', { detail: 'the client did not answer in time' })),
        ASK_TIMEOUT_MS,
      )
      timer.unref()
      const settle = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        this.#questions.delete(id)
      }
      const fail = (error: Error): void => {
        settle()
        reject(error)
      }
      const onAbort = (): void => {
        send(
          notificationMessage(
            'notifications/cancelled',
            `{"requestId":${id},"reason":"the question was withdrawn"}`,
          ),
        )
        fail(withdrawn())
      }
      this.#questions.set(id, {
        resolve: (reply) => {
          settle()
          resolve(reply)
        },
        reject: fail,
      })
      signal.addEventListener('abort', onAbort, { once: true })
      if (!send(requestMessage(id, request.method, request.params))) {
        fail(
          new GatehouseError('BACKEND_UNAVAILABLE', {
            detail: 'the client cannot be asked: it accepts no event stream',
          }),
        )
      }
    })
  }

  /** Takes the client's answer to a question. False when nobody waits for it. */
  answer(message: Message): boolean {
    const question = message.id === undefined ? undefined : this.#questions.get(message.id)
    if (!question) return false
    if (message.result) question.resolve({ result: message.result })
    else if (message.error) question.resolve({ error: message.error })
    return true
  }

  /** Ends everything that is in flight and every stream. */
  end(reason: Error): void {
    for (const cancel of this.inFlight.values()) cancel(reason)
    for (const question of this.#questions.values()) question.reject(reason)
    for (const stream of this.#streams) stream.end()
  }
}

function withdrawn(): GatehouseError {
  return new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the question was withdrawn' })
}

/** Throws CAPABILITY_REQUIRED when the client did not declare that it can be asked this, in this way. */
export function requireAbility(abilities: ClientAbilities, { method, params }: Ask): void {
  const lacking = lackingAbility(abilities, method, params)
  if (!lacking) return
  const names = Object.entries(lacking).flatMap(([name, part]) => [name, ...Object.keys(part)])
  throw new GatehouseError('CAPABILITY_REQUIRED', {
    detail: `the client has not declared the capability ${names.join('.')}`,
    data: { requiredCapabilities: lacking },
  })
}

/** What is missing, in the form in which it would be declared. */
function lackingAbility(
  abilities: ClientAbilities,
  method: string,
  params: Buffer | undefined,
): Readonly<Record<string, object>> | undefined {
  if (method === 'roots/list') return abilities.roots ? undefined : { roots: {} }
  const asked = params?.[0] === 0x7b ? new JsonObject(params) : undefined
  if (method === 'sampling/createMessage') {
    if (!abilities.sampling) return { sampling: {} }
    const withTools = asked?.raw('tools') ?? asked?.raw('toolChoice')
    return withTools && !abilities.samplingTools ? { sampling: { tools: {} } } : undefined
  }
  if (!abilities.elicitation) return { elicitation: {} }
  return asked?.text('mode') === 'url' && !abilities.elicitationUrl ? { elicitation: { url: {} } } : undefined
}

/** True when a log message is at least as severe as the level; without a level everything passes. */
export function passesLevel(params: Buffer, level: string | undefined): boolean {
  if (level === undefined) return true
  const own = new JsonObject(params).text('level')
  return own === undefined || LOG_LEVELS.indexOf(own) >= LOG_LEVELS.indexOf(level)
}
