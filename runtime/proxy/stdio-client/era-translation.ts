/**
 * Translates between a client and a server with different protocol eras in `proxy stdio`. The client's messages are
 * forwarded unchanged until the server rejects the client's era and turns out to support the other era.
 *
 * A translated conversation uses a separate bridge to the server with its own session.
 * Source: MCP 2026-07-28, versioning, streamable HTTP and stdio "Backward Compatibility".
 */
import { PassThrough } from 'node:stream'
import {
  checkStatelessBody,
  type Era,
  JsonObject,
  type Message,
  paramsOf,
  resultMessage,
  rpcCode,
  eraOfError,
  foreignStatuses,
  allVersions,
  type ServerLink,
  discover,
  LinkRequester,
  SessionTranslator,
  type StatelessRequest,
  StatelessTranslator,
} from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import { messagesOf } from '../stdio-server/messages.ts'
import type { LineWriter } from './lines.ts'

/** Runs a `RawBridge` between two streams until the input ends. */
export type RunBridge = (input: PassThrough, writer: LineWriter) => Promise<void>

export interface EraTranslationOptions {
  readonly writer: LineWriter
  readonly run: RunBridge
  readonly log: Log
}

/** Maximum number of concurrent sessions that one client may have at the server. */
const maxLinks = 32
const ownInfo = '{"name":"gatehouse","version":"0.0.0"}'
const never = new AbortController().signal

export class EraTranslation {
  readonly #options: EraTranslationOptions
  readonly #links = new Set<ServerLink>()
  #session: SessionTranslator | undefined
  #stateless: StatelessTranslator | undefined
  #opening: Promise<StatelessTranslator | undefined> | undefined

  constructor(options: EraTranslationOptions) {
    this.#options = options
  }

  /** Translates a message from the client if necessary. Returns undefined when the message is forwarded unchanged. */
  carry(message: Message, era: Era, signal: AbortSignal = never): Promise<void> | undefined {
    if (era === 'session') return this.#session?.fromClient(message)
    if (!this.#stateless || message.kind !== 'request') return undefined
    return this.#translate(this.#stateless, message, signal)
  }

  /**
   * Handles an error response. Resolves to true when the server supports the other era and the request was executed
   * there.
   */
  async takeOver(message: Message, response: Message, era: Era, signal: AbortSignal): Promise<boolean> {
    if (!response.error) return false
    if (era === 'session') return message.method === 'initialize' && this.#openStateless(message)
    if (!mayBeForeign(message.method, new JsonObject(response.error))) return false
    this.#opening ??= this.#openSession(message).finally(() => {
      this.#opening = undefined
    })
    const translator = await this.#opening
    if (!translator) return false
    await this.#translate(translator, message, signal)
    return true
  }

  /** Checks whether a server that rejected `initialize` supports the stateless era. */
  async #openStateless(initialize: Message): Promise<boolean> {
    let receive: (message: Message) => void = () => undefined
    const link = this.#open((message) => receive(message))
    const requester = new LinkRequester((message) => link.send(message))
    receive = (message) => void requester.take(message)
    const discovered = await discover(requester, ownInfo).catch(() => undefined)
    if (!discovered) {
      void link.close()
      return false
    }
    const { writer, log } = this.#options
    const session = new SessionTranslator({
      toServer: (message) => link.send(message),
      client: {
        send: (message) => writer.write(message),
        respond: (id, result) => writer.write(resultMessage(id, result)),
        drop: () => undefined,
      },
      log,
      discovered,
    })
    receive = (message) => void session.fromServer(message)
    this.#session = session
    await session.fromClient(initialize)
    return true
  }

  /** Opens a session with a server that rejected a stateless request. */
  async #openSession(message: Message): Promise<StatelessTranslator | undefined> {
    if (this.#stateless) return this.#stateless
    const translator = new StatelessTranslator({
      open: (onMessage) => this.#open(onMessage),
      infoFor: (info) => info?.toString() ?? ownInfo,
      maxLinks: () => maxLinks,
      now: Date.now,
      log: this.#options.log,
    })
    try {
      await translator.open(requestOf(message))
      this.#stateless = translator
      return translator
    } catch {
      await translator.close()
      return undefined
    }
  }

  #translate(translator: StatelessTranslator, message: Message, gone: AbortSignal): Promise<void> {
    const write = (line: Buffer): Promise<void> => this.#options.writer.write(line)
    return translator.request(requestOf(message), {
      streams: true,
      gone,
      send: write,
      end: write,
      endResult: (id, result) => write(resultMessage(id, result)),
      drop: () => {
        const params = `{"requestId":${message.id ?? 'null'},"reason":"the subscription has ended"}`
        void write(Buffer.from(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`))
      },
    })
  }

  #open(onMessage: (message: Message) => void): ServerLink {
    const input = new PassThrough()
    const onLine = messagesOf(this.#options.log, { onMessage })
    const writer: LineWriter = {
      write: async (line) => onLine(line),
      closed: new Promise(() => undefined),
    }
    const done = this.#options.run(input, writer).catch(() => undefined)
    const link: ServerLink = {
      send: (message) => void input.write(Buffer.concat([message, newline])),
      ended: done.then(() => 'the connection was closed'),
      close: async () => {
        input.end()
        await done
      },
    }
    this.#links.add(link)
    void link.ended.then(() => this.#links.delete(link))
    return link
  }

  /** Closes every conversation that was opened here. */
  async close(): Promise<void> {
    await this.#stateless?.close()
    await Promise.all([...this.#links].map((link) => link.close()))
  }
}

const newline = Buffer.from('\n')

/** Throws MessageError for a request without the fields that its revision requires. */
function requestOf(message: Message): StatelessRequest {
  const params = paramsOf(message)
  const meta = checkStatelessBody(message, params, allVersions)
  return { id: message.id ?? '', method: message.method, params, meta, scope: '' }
}

/** True for an error that a stateless-era server would not return for this request. */
function mayBeForeign(method: string, error: JsonObject): boolean {
  const era = eraOfError(error)
  if (era) return era === 'session'
  const code = error.value('code')
  if (method === 'server/discover') return true
  if (code === -32000 || code === rpcCode.invalidRequest) return true
  return code === rpcCode.internal && foreignStatuses.has(error.object('data')?.value('status'))
}
