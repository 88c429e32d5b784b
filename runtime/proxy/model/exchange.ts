/**
 * The proxy's own state on an exchange: the JSON-RPC message found in the body, the session it belongs to, and what
 * the outgoing credential adds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { clientRules, type Message, MessageError, scanMessage } from '../../mcp/index.ts'
import { Exchange } from '../../net/index.ts'
import type { OutgoingRequest } from '../../outgoing/index.ts'
import type { ProxiedSession } from './session.ts'

/** The raw socket of an upgrade request and the bytes already read past its header block. */
export interface Upgrade {
  readonly socket: Duplex
  readonly head: Buffer
}

export class ProxyExchange extends Exchange {
  /** Set when the request names a session that this proxy knows. */
  session: ProxiedSession | undefined
  /** The access token that the last attempt carried. */
  usedToken: string | undefined
  /** The last attempt as the outgoing strategy saw it. */
  outgoing: OutgoingRequest | undefined
  /** The response is an event stream. */
  streamed = false
  /** A question of a supervisor about this process; a good response is not worth a line in the log. */
  probe = false
  readonly upgrade: Upgrade | undefined

  #message: Message | undefined
  #scanned = false

  constructor(req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) {
    super(req, res)
    this.upgrade = upgrade
  }

  /**
   * The JSON-RPC message in the body, when the body is one. Found on first use: most requests are forwarded without
   * a look inside.
   */
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

  /** Raw JSON text of the request's id; undefined for notifications and whatever is not JSON-RPC. */
  get rpcId(): string | undefined {
    return this.message?.kind === 'request' ? this.message.id : undefined
  }

  /** A GET that asks for events, or an upgrade: the first byte may take long. */
  get asksForStream(): boolean {
    const { method, headers } = this.req
    if (this.upgrade !== undefined) return true
    return method === 'GET' && headers.accept?.includes('text/event-stream') === true
  }

  get isInitialize(): boolean {
    return this.hasJsonBody && this.body.includes(initialize) && this.message?.method === 'initialize'
  }
}

/** `application/json` and its relatives, with parameters. */
const jsonType = /[/+]json\b/i
const initialize = Buffer.from('initialize')

/** A body that is not JSON-RPC is none of the proxy's business. */
function tryScan(body: Buffer): Message | undefined {
  try {
    return scanMessage(body, clientRules)
  } catch (error) {
    if (error instanceof MessageError) return undefined
    throw error
  }
}
