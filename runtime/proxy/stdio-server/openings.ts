/**
 * Conversations with the server that were started with `initialize` and are not in use: the server is still starting,
 * or the client disconnected before it used the conversation.
 *
 * A client that stops waiting, such as a health check, never ends or duplicates a starting process. The process keeps
 * running, and the next client with the same `initialize` uses it. The number of unused conversations is limited. A
 * conversation ends when it is idle or when its server does not start in time.
 * Source: MCP 2025-11-25, lifecycle.
 */
import {
  errorMessage,
  type Message,
  responseMessage,
  requestMessage,
  resultMessage,
  scanMessage,
  type OpenLink,
  type ServerLink,
  opensSession,
  linkEnded,
} from '../../mcp/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'

/** Maximum number of unused conversations that stay open after the server has responded. */
const maxAnswered = 2
/** Maximum number of unused conversations whose server is still starting. */
const maxStarting = 8
/**
 * A server that has not responded after this time is abandoned. The limit is long because the server may be installing
 * a package.
 */
const maxStartMs = 10 * 60_000

type OnMessage = (message: Message) => void

/** Returns true if a conversation that was started with the params `other` can be used for the params `wanted`. */
export type IsSame = (other: Buffer, wanted: Buffer) => boolean

/** The server's response to `initialize`. */
export interface InitializeAnswer {
  readonly answer: Message
  readonly opensSession: boolean
  /** A conversation with a server that did not open a session; undefined when a client uses it. */
  readonly opening?: Opening | undefined
}

export class Openings {
  /** Starts a conversation that this class does not manage. */
  readonly take: OpenLink
  readonly #now: () => number
  /** Conversations that wait for the response to `initialize`, with or without a client. */
  readonly #pending = new Set<Opening>()
  /** Conversations without a client, oldest first. */
  readonly #unused = new Set<Opening>()
  /** The latest result of `initialize`. */
  #latest: Message | undefined
  /** Resolves with the first result of `initialize`. */
  readonly #first = Promise.withResolvers<Message>()

  constructor(take: OpenLink, now: () => number) {
    this.take = take
    this.#now = now
  }

  /** True while a conversation that has received its response is waiting for a client. */
  get hasUnused(): boolean {
    return [...this.#unused].some(({ answer }) => answer !== undefined)
  }

  /**
   * Returns a link for one client. The client's first message decides: an `initialize` continues an unused conversation
   * that `isSame` accepts; any other message starts a new one. By default, `isSame` requires equal params.
   */
  link(onMessage: OnMessage, isSame: IsSame = isEqual): ServerLink {
    return new OpeningLink(
      {
        claim: (initialize) => this.#claim(initialize, isSame),
        release: (opening) => this.#release(opening),
        take: this.take,
      },
      onMessage,
    )
  }

  /**
   * Returns the server's response to `initialize`, from an earlier response or from a conversation that is being
   * opened. Otherwise opens a conversation with `params`, which the next client may use. Rejects when the server ends
   * first.
   */
  async introduce(params: Buffer): Promise<InitializeAnswer> {
    if (this.#latest) return { answer: this.#latest, opensSession: true }
    for (const other of this.#pending) {
      const answer = await Promise.race([other.settled, this.#first.promise])
      if (answer && opensSession(answer.result)) return { answer, opensSession: true }
    }
    const opening = this.#start('0', params)
    this.#keep(opening)
    const answer = await Promise.race([opening.answered, this.#first.promise])
    if (!answer) throw linkEnded(await opening.link.ended)
    if (opensSession(answer.result)) return { answer, opensSession: true }
    return { answer, opensSession: false, opening: this.#unused.delete(opening) ? opening : undefined }
  }

  #claim({ id = '0', params }: Message, isSame: IsSame): Opening {
    const wanted = params ?? Buffer.from('{}')
    for (const opening of this.#unused) {
      if (!isSame(opening.params, wanted)) continue
      this.#unused.delete(opening)
      return opening
    }
    return this.#start(id, wanted)
  }

  #start(id: string, params: Buffer): Opening {
    const opening = new Opening(this.take, { id, params, startedAt: this.#now() })
    this.#pending.add(opening)
    void opening.answered.then((answer) => {
      this.#pending.delete(opening)
      if (!answer || !opensSession(answer.result)) return
      this.#latest = answer
      this.#first.resolve(answer)
    })
    void opening.link.ended.then(() => this.#unused.delete(opening))
    return opening
  }

  #release(opening: Opening): void {
    opening.onMessage = undefined
    if (opening.answer && !opensSession(opening.answer.result)) void opening.link.close()
    else this.#keep(opening)
  }

  #keep(opening: Opening): void {
    opening.usedAt = this.#now()
    this.#unused.add(opening)
    const all = [...this.#unused]
    const answered = all.filter(({ answer }) => answer)
    const starting = all.filter(({ answer }) => !answer)
    const excess = [
      ...answered.slice(0, Math.max(0, answered.length - maxAnswered)),
      ...starting.slice(0, Math.max(0, starting.length - maxStarting)),
    ]
    for (const opening of excess) this.#drop(opening)
  }

  #drop(opening: Opening): void {
    this.#unused.delete(opening)
    void opening.link.close()
  }

  /**
   * Ends unused conversations that were last used before `before`, and conversations whose server does not start in
   * time.
   */
  evict(before: number): void {
    const startedBefore = this.#now() - maxStartMs
    for (const opening of this.#pending)
      if (opening.startedAt <= startedBefore) {
        this.#pending.delete(opening)
        opening.giveUp()
      }
    for (const opening of this.#unused)
      if (opening.answer ? opening.usedAt <= before : opening.startedAt <= startedBefore) this.#drop(opening)
  }

  async close(): Promise<void> {
    const all = [...this.#unused]
    this.#unused.clear()
    await Promise.all(all.map(({ link }) => link.close()))
  }
}

function isEqual(other: Buffer, wanted: Buffer): boolean {
  return other.equals(wanted)
}

interface OpeningParts {
  readonly id: string
  readonly params: Buffer
  readonly startedAt: number
}

/** A conversation whose `initialize` was sent. */
class Opening {
  readonly params: Buffer
  readonly startedAt: number
  readonly link: ServerLink
  /** Resolves with the response, or undefined when the conversation ends first. */
  readonly answered: Promise<Message | undefined>
  /** Like `answered`, but also resolves with undefined if the server is abandoned. */
  readonly settled: Promise<Message | undefined>
  /** True while only `initialize` has been sent. */
  isAlone = true
  answer: Message | undefined
  /** Receives all messages after the response; undefined when there is no client. */
  onMessage: OnMessage | undefined
  usedAt = 0
  readonly #id: string
  readonly #answered = Promise.withResolvers<Message | undefined>()
  readonly #givenUp = Promise.withResolvers<undefined>()

  constructor(take: OpenLink, { id, params, startedAt }: OpeningParts) {
    this.#id = id
    this.params = params
    this.startedAt = startedAt
    this.answered = this.#answered.promise
    this.settled = Promise.race([this.answered, this.#givenUp.promise])
    this.link = take((message) => this.#receive(message))
    void this.link.ended.then(() => this.#answered.resolve(undefined))
    this.link.send(requestMessage(id, 'initialize', params))
  }

  /** Assigns the conversation to a client that sends no `initialize`. */
  adopt(onMessage: OnMessage): ServerLink {
    this.onMessage = onMessage
    return this.link
  }

  giveUp(): void {
    this.#givenUp.resolve(undefined)
  }

  #receive(message: Message): void {
    // No other request was sent, so the response belongs to `initialize`, regardless of its id.
    const isForInitialize = message.method === '' && (this.isAlone || message.id === this.#id)
    if (this.answer === undefined && isForInitialize) {
      this.answer = message
      this.#answered.resolve(message)
    } else if (this.onMessage) this.onMessage(message)
    else if (message.kind === 'request') this.#respond(message)
  }

  /** Answers requests from the server while there is no client. */
  #respond({ id, method }: Message): void {
    this.link.send(
      method === 'ping'
        ? resultMessage(id ?? 'null', '{}')
        : errorMessage(id, new GatehouseError('METHOD_NOT_FOUND')),
    )
  }

  /** Sends the server's response to a client, with `id` as the id of the client's `initialize`. */
  async serve(id: string, onMessage: OnMessage): Promise<void> {
    this.onMessage = onMessage
    const answer = await this.answered
    // The client may have disconnected, and the conversation may already serve another client.
    if (!answer || this.onMessage !== onMessage) return
    onMessage(answer.id === id ? answer : scanMessage(responseMessage(id, answer)))
  }
}

const cancelled = 'notifications/cancelled'

interface OpeningOwner {
  readonly claim: (initialize: Message) => Opening
  readonly release: (opening: Opening) => void
  readonly take: OpenLink
}

/** One client's link. */
class OpeningLink implements ServerLink {
  readonly ended: Promise<string>
  readonly #owner: OpeningOwner
  readonly #onMessage: OnMessage
  readonly #ended = Promise.withResolvers<string>()
  #link: ServerLink | undefined
  /** Set while only `initialize` has been sent. */
  #opening: Opening | undefined
  #isClosed = false

  constructor(owner: OpeningOwner, onMessage: OnMessage) {
    this.#owner = owner
    this.#onMessage = onMessage
    this.ended = this.#ended.promise
  }

  send(bytes: Buffer): void {
    // The client has disconnected, so its responses to server requests are no longer needed.
    if (this.#isClosed) return
    if (!this.#link) return this.#begin(bytes)
    // Do not forward the cancellation: a starting server would read it, but `initialize` cannot be cancelled.
    if (this.#opening && !this.#opening.answer && scanMessage(bytes).method === cancelled) return
    if (this.#opening) this.#opening.isAlone = false
    this.#opening = undefined
    this.#link.send(bytes)
  }

  #begin(bytes: Buffer): void {
    const message = scanMessage(bytes)
    try {
      if (message.method === 'initialize' && message.id !== undefined) {
        const opening = this.#owner.claim(message)
        this.#opening = opening
        this.#link = opening.link
        // If the response cannot be delivered, the client gets the error for a server that has ended.
        opening.serve(message.id, this.#onMessage).catch(() => void opening.link.close())
      } else {
        this.#link = this.#owner.take(this.#onMessage)
        this.#link.send(bytes)
      }
    } catch (error) {
      this.#isClosed = true
      this.#ended.resolve('it failed to start')
      throw error
    }
    void this.#link.ended.then((why) => this.#ended.resolve(why))
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#ended.resolve('the client disconnected')
    if (this.#opening) this.#owner.release(this.#opening)
    else await this.#link?.close()
  }
}
