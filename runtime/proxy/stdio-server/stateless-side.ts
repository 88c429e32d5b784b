/**
 * Stateless clients of a stdio server: finds out once which era the program speaks, and carries their requests to it, as
 * they are or translated.
 *
 * Clients of one scope share processes; the scope is the caller as the proxy in front knows it.
 * Source: MCP 2026-07-28, stdio "Backward Compatibility", versioning.
 */
import type { Log } from '../../net/index.ts'
import type { OpenLink } from '../eras/link.ts'
import { discover, probeTimeoutMs } from '../eras/probe.ts'
import { StatelessTranslator } from '../eras/stateless-translator.ts'
import { StatelessLink, StatelessRelay } from '../eras/stateless-relay.ts'
import type { StatelessReply, StatelessRequest } from '../eras/stateless-reply.ts'
import { emptyObject, emptyObjectBytes, statelessVersion } from '../../mcp/index.ts'

export interface ServedStatelessSideOptions {
  readonly open: OpenLink
  /** Raw JSON of our own `Implementation`: these processes serve many clients. */
  readonly info: string
  /** Processes that may run for stateless clients. */
  readonly maxProcesses: () => number
  readonly now: () => number
  readonly log: Log
  /** Default 10 s. */
  readonly probeMs?: number | undefined
}

/** The scope of the process that was probed for its era: requests without a caller. */
const commonScope = ''
/** The second question may take as much longer. */
const lateFactor = 3
/** Of a client without abilities: a session is opened for it to see whether there are any. */
const plainRequest: StatelessRequest = {
  id: '0',
  method: 'tools/list',
  params: emptyObject,
  meta: {
    protocolVersion: statelessVersion,
    clientCapabilities: emptyObjectBytes,
    clientInfo: undefined,
    logLevel: undefined,
  },
  scope: commonScope,
}

export class ServedStatelessSide {
  readonly #options: ServedStatelessSideOptions
  #handler: Promise<StatelessTranslator | StatelessRelay> | undefined
  #known: StatelessTranslator | StatelessRelay | undefined

  constructor(options: ServedStatelessSideOptions) {
    this.#options = options
  }

  /** Processes that run for stateless clients. */
  get size(): number {
    return this.#known?.size ?? 0
  }

  /** Carries a request out and sends its response. Rejects when the era of the server cannot be found out. */
  async request(request: StatelessRequest, reply: StatelessReply): Promise<void> {
    await (await this.#decided()).request(request, reply)
  }

  #decided(): Promise<StatelessTranslator | StatelessRelay> {
    this.#handler ??= this.#decide().catch((error: unknown) => {
      this.#handler = undefined
      throw error
    })
    return this.#handler
  }

  async #decide(): Promise<StatelessTranslator | StatelessRelay> {
    const { open, info, maxProcesses, now, log, probeMs = probeTimeoutMs } = this.#options
    const relay = await this.#relay(probeMs)
    if (relay) return relay
    const translator = new StatelessTranslator({ open, maxLinks: maxProcesses, now, infoFor: () => info })
    try {
      await translator.open(plainRequest)
    } catch (refusal) {
      await translator.close()
      // It was silent and opens no session: it may only have been slow to start, for instance while it was fetched.
      const late = await this.#relay(probeMs * lateFactor)
      if (late) return late
      throw refusal
    }
    log.info('the era of the server is known', { era: 'session' })
    this.#known = translator
    return translator
  }

  /** Undefined when the server does not say in time that it speaks the stateless era. */
  async #relay(timeoutMs: number): Promise<StatelessRelay | undefined> {
    const { open, info, maxProcesses, now, log } = this.#options
    const link = new StatelessLink(open)
    if (!(await discover(link.requester, info, timeoutMs))) {
      // A server of the session era that got a request before `initialize` may be in any state.
      void link.close()
      return undefined
    }
    log.info('the era of the server is known', { era: 'stateless' })
    const relay = new StatelessRelay({ open, maxLinks: maxProcesses, now })
    relay.adopt(commonScope, link)
    this.#known = relay
    return relay
  }

  evict(before: number): void {
    this.#known?.evict(before)
  }

  async close(): Promise<void> {
    await this.#known?.close()
  }
}
