/**
 * Serves stateless clients of a stdio server: detects the program's protocol era once, then forwards requests to it,
 * translated if needed.
 *
 * Clients in one scope share processes; the scope is the caller, as identified by the proxy in front.
 * Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, stdio "Backward Compatibility", versioning.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  emptyObjectBytes,
  JsonObject,
  type Message,
  discover,
  initializeParams,
  type SessionServer,
  sessionServer,
  StatelessTranslator,
  StatelessLink,
  StatelessRelay,
  type StatelessReply,
  type StatelessRequest,
} from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import { visibleText } from '../../observe/index.ts'
import type { Openings } from './openings.ts'

export interface ServedStatelessSideOptions {
  readonly openings: Openings
  /** This program's own `Implementation` as raw JSON, because these processes serve many clients. */
  readonly info: string
  /** Maximum number of processes that serve stateless clients. */
  readonly maxProcesses: () => number
  readonly now: () => number
  readonly log: Log
  /** Timeout for `server/discover` after a server has rejected `initialize`. Default 10 s. */
  readonly probeMs?: number | undefined
}

/** Scope of the process that is used to detect the protocol era, and of requests without a caller. */
const commonScope = ''
/** A longer `clientInfo` is not forwarded to the server. */
const maxInfoBytes = 4096
const maxWaiting = 1_000
const maxRefusalText = 500

type Handler = StatelessTranslator | StatelessRelay

/** A request that waits until the protocol era is known. */
interface WaitingRequest {
  readonly resolve: (handler: Handler) => void
  readonly reject: (error: unknown) => void
}

export class ServedStatelessSide {
  readonly #options: ServedStatelessSideOptions
  /** Requests that wait until the era is known. The first request starts the detection. */
  readonly #waiting = new Set<WaitingRequest>()
  #isFinding = false
  #known: Handler | undefined
  #introduction: SessionServer | undefined
  /** Error message from a server that supports neither protocol era; undefined once the era is known. */
  refusal: string | undefined

  constructor(options: ServedStatelessSideOptions) {
    this.#options = options
  }

  /** Number of processes that serve stateless clients. */
  get size(): number {
    return this.#known?.size ?? 0
  }

  /** Executes a request and sends its response. Rejects when the server's protocol era cannot be determined. */
  async request(request: StatelessRequest, reply: StatelessReply): Promise<void> {
    const handler = this.#known ?? (await this.#awaitKnown(request, reply.gone))
    await handler?.request(request, reply)
  }

  /**
   * Resolves with undefined when the client has disconnected. The detection then continues in the background.
   */
  async #awaitKnown({ meta }: StatelessRequest, gone: AbortSignal): Promise<Handler | undefined> {
    if (this.#waiting.size >= maxWaiting)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the server is starting; try again later' })
    const { promise, resolve, reject } = Promise.withResolvers<Handler | undefined>()
    const waiting = { resolve, reject }
    this.#waiting.add(waiting)
    if (!this.#isFinding) void this.#find(meta.clientInfo)
    const onGone = (): void => resolve(undefined)
    gone.addEventListener('abort', onGone, { once: true })
    if (gone.aborted) onGone()
    try {
      return await promise
    } finally {
      gone.removeEventListener('abort', onGone)
      this.#waiting.delete(waiting)
    }
  }

  async #find(clientInfo: Buffer | undefined): Promise<void> {
    this.#isFinding = true
    try {
      const known = await this.#decide(clientInfo)
      this.#known = known
      this.refusal = undefined
      for (const { resolve } of this.#waiting) resolve(known)
    } catch (error) {
      for (const { reject } of this.#waiting) reject(error)
    } finally {
      this.#isFinding = false
    }
  }

  /**
   * Sends `initialize` first: every session-era server responds to it, and a stateless-era server rejects it and keeps
   * running. In the opposite order, session-era servers might exit or not respond. The timeout is the same as in
   * `Openings` (ten minutes), because the server may still be starting.
   */
  async #decide(clientInfo: Buffer | undefined): Promise<Handler> {
    const { openings, info, maxProcesses, now, log, probeMs } = this.#options
    const isShort = clientInfo !== undefined && clientInfo.length <= maxInfoBytes
    const params = initializeParams(emptyObjectBytes, isShort ? clientInfo.toString() : info)
    const { answer, opensSession, opening } = await openings.introduce(Buffer.from(params))
    if (opensSession && answer.result) {
      this.#introduction = sessionServer(answer.result)
      log.info('detected the server’s protocol era', { era: 'session' })
      return new StatelessTranslator({
        open: (onMessage) => openings.link(onMessage, hasSameCapabilities),
        maxLinks: maxProcesses,
        now,
        log,
        infoFor: () => info,
        // Uses the stored introduction while an unused process is available, so that the process stays free for the
        // next session.
        introduction: () => (openings.hasUnused ? this.#introduction : undefined),
      })
    }
    const link = new StatelessLink(opening ? (onMessage) => opening.adopt(onMessage) : openings.take)
    if (!(await discover(link.requester, info, probeMs))) {
      void link.close()
      this.refusal = refusalText(answer)
      throw new GatehouseError('BACKEND_PROTOCOL', {
        detail: `the server refused to open a session: ${this.refusal}`,
      })
    }
    log.info('detected the server’s protocol era', { era: 'stateless' })
    const relay = new StatelessRelay({ open: openings.take, maxLinks: maxProcesses, now })
    relay.adopt(commonScope, link)
    return relay
  }

  evict(before: number): void {
    this.#known?.evict(before)
  }

  async close(): Promise<void> {
    await this.#known?.close()
  }
}

function refusalText({ error }: Message): string {
  const text = error && new JsonObject(error).text('message')
  if (text === undefined || text === '') return 'its response to initialize is unusable'
  return visibleText(text.slice(0, maxRefusalText))
}

/** Compares all params except the client's name, because stateless clients share processes. */
function hasSameCapabilities(other: Buffer, wanted: Buffer): boolean {
  const [one, two] = [new JsonObject(other), new JsonObject(wanted)]
  return (['protocolVersion', 'capabilities', '_meta'] as const).every(
    (name) => one.raw(name)?.toString() === two.raw(name)?.toString(),
  )
}
