/**
 * Translates between stateless clients and a session-era server. Requests share sessions. A server request becomes an
 * interim result. The state in the interim result identifies the call that continues when the client returns.
 *
 * A request has an exclusive session if its client accepts server requests or log messages. The session stays exclusive
 * while the request runs or waits for the client's answers. A server request in that session can then be meant only for
 * this client.
 * Source: MCP 2026-07-28, basic, stdio, patterns; MCP 2025-11-25.
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Log } from '../../net/index.ts'
import type { StatelessMeta } from '../era.ts'
import { abilitiesIn, withoutTasks } from '../eras/abilities.ts'
import { AskingCall } from '../eras/asking-call.ts'
import { requireVisits, statelessError, visitRequests } from '../eras/errors.ts'
import { type Ask, askingMethods, type AskReply } from '../eras/questions.ts'
import { completeResult, completeResultInTurns, inputRequired } from '../eras/results.ts'
import { JsonObject } from '../json/object.ts'
import { workOn } from '../json/turns.ts'
import { logLevels, nativeEra, allVersions } from '../protocol.ts'
import { errorMessage, errorObject, rawErrorMessage, resultMessage } from '../write.ts'
import type { OpenLink, LinkOutcome } from './link.ts'
import { LinkPool } from './link-pool.ts'
import { Parked } from './parked.ts'
import { type CallSide, noClientError, SessionLink } from './session-link.ts'
import type { SessionServer } from '../eras/introduction.ts'
import type { StatelessReply, StatelessRequest } from './stateless-reply.ts'
import { Watchers } from './watchers.ts'

export interface StatelessTranslatorOptions {
  readonly open: OpenLink
  /** Returns the raw JSON `Implementation` that represents a client to the server. */
  readonly infoFor: (clientInfo: Buffer | undefined) => string
  readonly maxLinks: () => number
  readonly now: () => number
  readonly log: Log
  /**
   * Returns the server's capabilities, information and instructions if they are already known, without opening a
   * session.
   */
  readonly introduction?: () => SessionServer | undefined
}

/** A running call. After an interim result, the call continues under a different request. */
interface RunningCall {
  readonly link: SessionLink
  readonly asking: AskingCall<LinkOutcome>
  reply: StatelessReply | undefined
}

/**
 * Work that is waiting for a client: a call to continue, or `again` for a request to repeat after the user has opened a
 * URL.
 */
type WaitingWork = RunningCall | 'again'

const maxCapabilityBytes = 16 * 1024
/** Methods that the stateless era does not have. */
const unsupportedMethods: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
])

export class StatelessTranslator {
  readonly #options: StatelessTranslatorOptions
  readonly #pool: LinkPool<SessionLink>
  readonly #parked: Parked<WaitingWork>
  readonly #lanes = new Map<string, { capabilities: Buffer; info: string; watchers: Watchers }>()

  constructor(options: StatelessTranslatorOptions) {
    this.#options = options
    this.#pool = new LinkPool({
      make: (lane) => this.#makeLink(lane),
      maxLinks: options.maxLinks,
      now: options.now,
      // A client that leaves questions unanswered must not block other clients.
      freeWaiting: () => this.#parked.expireOne((waiting) => waiting !== 'again'),
    })
    this.#parked = new Parked((waiting) => {
      if (waiting === 'again') return
      waiting.asking.cancel(
        new GatehouseError('BACKEND_TIMEOUT', { detail: 'the client did not answer in time' }),
      )
      this.#pool.release(waiting.link)
    })
  }

  /** Number of open sessions. */
  get size(): number {
    return this.#pool.size
  }

  /** Opens a session before the first request. Rejects if the server rejects the session. */
  async open(request: StatelessRequest): Promise<void> {
    const link = this.#pool.acquire(this.#laneOf(request), { exclusive: false })
    try {
      await link.opened
    } finally {
      this.#pool.release(link)
    }
  }

  /** Executes a request and sends its response. Never rejects. */
  async request(request: StatelessRequest, reply: StatelessReply): Promise<void> {
    try {
      await this.#request(request, reply)
    } catch (error) {
      if (reply.gone.aborted) return
      await reply.end(errorMessage(request.id, error), errorObject(error).code)
    }
  }

  async #request(request: StatelessRequest, reply: StatelessReply): Promise<void> {
    const { method, meta } = request
    if (meta.logLevel !== undefined && !logLevels.includes(meta.logLevel))
      throw new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: unknown log level' })
    if (unsupportedMethods.has(method) || method.startsWith('tasks/'))
      throw new GatehouseError('METHOD_NOT_FOUND')
    const lane = this.#laneOf(request)
    try {
      if (method === 'server/discover') await this.#discover(request, reply, lane)
      else if (method === 'subscriptions/listen') await this.#listen(request, reply, lane)
      else await this.#call(request, reply, lane)
    } finally {
      this.#removeIdleLane(lane)
    }
  }

  async #call(request: StatelessRequest, reply: StatelessReply, lane: string): Promise<void> {
    const { params } = request
    const state = params.text('requestState')
    const waiting = state === undefined ? 'again' : this.#parked.take(state, request)
    if (waiting === 'again') {
      if (state !== undefined) requireVisits(params.object('inputResponses'))
      return this.#follow(this.#startCall(request, lane), request, reply)
    }
    waiting.asking.response(params.object('inputResponses'))
    return this.#follow(waiting, request, reply)
  }

  /** Returns a request's lane. There is one lane for each scope and set of capabilities. */
  #laneOf({ scope, meta }: StatelessRequest): string {
    const { clientCapabilities } = meta
    if (clientCapabilities.length > maxCapabilityBytes)
      throw new GatehouseError('INVALID_PARAMS', {
        detail: `Invalid params: the declared capabilities have more than ${maxCapabilityBytes} bytes`,
      })
    const lane = hash('sha256', `${scope}\0${clientCapabilities.toString()}`, 'base64url')
    if (!this.#lanes.has(lane)) {
      this.#lanes.set(lane, {
        capabilities: withoutTasks(declaredIn(meta)),
        info: this.#options.infoFor(meta.clientInfo),
        watchers: new Watchers(() => this.#pool.links(lane), this.#options.log),
      })
    }
    return lane
  }

  #makeLink(lane: string): SessionLink {
    const known = this.#lanes.get(lane)
    if (!known) throw new GatehouseError('INTERNAL')
    const link = new SessionLink({
      open: this.#options.open,
      capabilities: known.capabilities,
      info: known.info,
      onNotification: (message) => known.watchers.forward(message),
    })
    known.watchers.addSession(link)
    void link.ended.then(() => this.#removeIdleLane(lane))
    return link
  }

  /** Removes a lane that has no sessions or listeners. */
  #removeIdleLane(lane: string): void {
    setImmediate(() => {
      const known = this.#lanes.get(lane)
      if (known?.watchers.size === 0 && this.#pool.links(lane).length === 0) this.#lanes.delete(lane)
    })
  }

  async #discover({ id }: StatelessRequest, reply: StatelessReply, lane: string): Promise<void> {
    const server = this.#options.introduction?.() ?? (await this.#introduction(lane))
    const { capabilities, info, instructions } = server
    const discovery = `{"supportedVersions":${JSON.stringify(allVersions)},"capabilities":${withoutTasks(capabilities).toString()}${instructions === undefined ? '' : `,"instructions":${instructions}`},"_meta":{"${nativeEra}":"session"}}`
    await reply.end(resultMessage(id, completeResult('server/discover', Buffer.from(discovery), info)))
  }

  async #introduction(lane: string): Promise<SessionServer> {
    const link = this.#pool.acquire(lane, { exclusive: false })
    try {
      return await link.opened
    } finally {
      this.#pool.release(link)
    }
  }

  async #listen(request: StatelessRequest, reply: StatelessReply, lane: string): Promise<void> {
    const link = this.#pool.acquire(lane, { exclusive: false })
    // A listener keeps the link open. Other requests may have exclusive use of the link in the meantime.
    link.pins++
    this.#pool.release(link)
    try {
      await this.#lanes.get(lane)?.watchers.listen(request, reply, link)
    } finally {
      link.pins--
    }
  }

  #startCall(request: StatelessRequest, lane: string): RunningCall {
    const { method, params, meta } = request
    const abilities = abilitiesIn(declaredIn(meta))
    const canPrompt =
      askingMethods.has(method) && (abilities.elicitation || abilities.sampling || abilities.roots)
    const link = this.#pool.acquire(lane, { exclusive: canPrompt || meta.logLevel !== undefined })
    const stop = new AbortController()
    const call: RunningCall = {
      link,
      asking: new AskingCall(abilities, (reason) => stop.abort(reason)),
      reply: undefined,
    }
    const side: CallSide = {
      progressToken: params.object('_meta')?.raw('progressToken')?.toString(),
      logLevel: meta.logLevel,
      send: (message) => call.reply?.send(message),
      ask: (asked, signal) => askWith(call, method, asked, signal),
    }
    const plain = new JsonObject(params.with({ requestState: undefined, inputResponses: undefined }))
    call.asking.follow(link.request(method, { params: plain }, side, stop.signal))
    return call
  }

  /** Runs a call on behalf of one request until the call ends or asks a question. */
  async #follow(call: RunningCall, request: StatelessRequest, reply: StatelessReply): Promise<void> {
    const { asking, link } = call
    call.reply = reply
    const onGone = (): void => asking.cancel(new Error('the client disconnected'))
    reply.gone.addEventListener('abort', onGone, { once: true })
    if (reply.gone.aborted) onGone()
    let parked = false
    try {
      const step = await asking.step()
      if (step.kind === 'ask') {
        const state = this.#park(call, request)
        parked = true
        await reply.end(resultMessage(request.id, inputRequired(step.requests, state, await infoOf(link))))
      } else await this.#finish(step.outcome, request, reply, link)
    } finally {
      reply.gone.removeEventListener('abort', onGone)
      if (!parked) this.#pool.release(link)
    }
  }

  /** Parks the call. If too many calls are waiting, cancels this call and throws the reason. */
  #park(call: RunningCall, request: StatelessRequest): string {
    call.reply = undefined
    try {
      return this.#parked.put(call, request)
    } catch (error) {
      call.asking.cancel(
        error instanceof Error ? error : new Error('too many requests are waiting for answers'),
      )
      throw error
    }
  }

  async #finish(
    { result, error }: LinkOutcome,
    request: StatelessRequest,
    reply: StatelessReply,
    link: SessionLink,
  ): Promise<void> {
    const { id, method, params, meta } = request
    const info = await infoOf(link)
    if (result) {
      const complete = await workOn(result, completeResultInTurns(method, result, info))
      return reply.endResult(id, complete)
    }
    const visits = askingMethods.has(method) ? visitRequests(error, abilitiesIn(declaredIn(meta))) : undefined
    if (visits) {
      const state = this.#parked.put('again', request)
      return reply.end(resultMessage(id, inputRequired(visits, state, info)))
    }
    const translated = statelessError(error, params.text('uri'))
    return reply.end(rawErrorMessage(id, translated), new JsonObject(translated).value('code'))
  }

  /** Closes sessions that were last used before `before`. */
  evict(before: number): void {
    this.#pool.evict(before)
  }

  async close(): Promise<void> {
    this.#parked.close()
    for (const { watchers } of this.#lanes.values()) watchers.close()
    await this.#pool.close()
  }
}

/**
 * Asks the client. Only some methods support interim results. During all other requests, the client does not accept
 * server requests.
 */
function askWith(
  { asking }: RunningCall,
  method: string,
  asked: Ask,
  signal: AbortSignal,
): Promise<AskReply> {
  if (askingMethods.has(method)) return asking.ask(asked, signal)
  if (asked.method === 'roots/list') return Promise.resolve({ result: Buffer.from('{"roots":[]}') })
  return Promise.reject(noClientError)
}

/** Reads the declared capabilities. Throws INVALID_PARAMS for a duplicate member. */
function declaredIn({ clientCapabilities }: StatelessMeta): JsonObject {
  try {
    return new JsonObject(clientCapabilities)
  } catch (cause) {
    throw new GatehouseError('INVALID_PARAMS', {
      detail: 'Invalid params: the declared capabilities contain a member twice',
      cause,
    })
  }
}

async function infoOf(link: SessionLink): Promise<string> {
  return (await link.opened).info
}
