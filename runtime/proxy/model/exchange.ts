/**
 * The proxy's state for an exchange: the JSON-RPC message in the body, its session, and the outgoing credential's data.
 */
import { hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { clientRules, type Message, MessageError, scanMessage } from '../../mcp/index.ts'
import { Exchange } from '../../net/index.ts'
import type { TokenProof } from '../../oauth/index.ts'
import type { OutgoingRequest } from '../../outgoing/index.ts'
import type { ProxiedSession } from './session.ts'

/**
 * The header that identifies callers to the bridge of a stdio server, so that the bridge never mixes their processes.
 * The header contains a digest of the caller, and is set only when the configuration marks the target as such a bridge.
 * A header with this name from a client is never forwarded.
 * Lower case.
 */
export const callerHeader = 'x-gatehouse-caller'

export function callerDigest(key: string): string {
  return hash('sha256', key, 'base64url')
}

/** The raw socket of an upgrade request, and any bytes already read after its headers. */
export interface Upgrade {
  readonly socket: Duplex
  readonly head: Buffer
}

export class ProxyExchange extends Exchange {
  /** The session that the request belongs to, if this proxy tracks the session. */
  session: ProxiedSession | undefined
  /** The access token used in the last attempt. */
  usedToken: string | undefined
  /** Signs the proofs for `usedToken`, if that token is bound to a key. */
  proof: TokenProof | undefined
  /** The last attempt, as passed to the outgoing strategy. */
  outgoing: OutgoingRequest | undefined
  /** True when the response is an event stream. */
  streamed = false
  /** True for a health probe, whose success is not logged. */
  probe = false
  readonly upgrade: Upgrade | undefined

  #message: Message | undefined
  #scanned = false

  constructor(req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) {
    super(req, res)
    this.upgrade = upgrade
  }

  /** The JSON-RPC message in the body, if any. Parsed on first use, because most requests are forwarded without it. */
  get message(): Message | undefined {
    if (!this.#scanned) {
      this.#scanned = true
      this.#message = this.hasJsonBody ? tryScan(this.body) : undefined
    }
    return this.#message
  }

  get hasJsonBody(): boolean {
    return this.body.length > 0 && jsonType.test(this.req.headers['content-type'] ?? '')
  }

  /** Raw JSON text of the request's id; undefined for notifications and other bodies. */
  get rpcId(): string | undefined {
    return this.message?.kind === 'request' ? this.message.id : undefined
  }

  /**
   * True for a GET that requests events, and for an upgrade. The first byte of the response may take a long time to
   * arrive.
   */
  get asksForStream(): boolean {
    const { method, headers } = this.req
    if (this.upgrade !== undefined) return true
    return method === 'GET' && headers.accept?.includes('text/event-stream') === true
  }

  get isInitialize(): boolean {
    return this.hasJsonBody && this.body.includes(initialize) && this.message?.method === 'initialize'
  }
}

/** `application/json` and types like `application/foo+json`, with parameters. */
const jsonType = /[/+]json\b/i
const initialize = Buffer.from('initialize')

/** Ignores bodies that are not JSON-RPC. */
function tryScan(body: Buffer): Message | undefined {
  try {
    return scanMessage(body, clientRules)
  } catch (error) {
    if (error instanceof MessageError) return undefined
    throw error
  }
}
