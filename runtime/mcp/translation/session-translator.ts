/**
 * Translates between a session-era client and a stateless server. Answers `initialize` with the server's discovery
 * result, adds the client's identity to every request, and turns input requests in results into server requests.
 *
 * Source: MCP 2025-11-25, lifecycle and utilities; MCP 2026-07-28, basic, stdio, patterns.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Abilities, abilitiesIn, requireAbility, withoutTasks } from '../eras/abilities.ts'
import { sessionError } from '../eras/errors.ts'
import { requestMeta, sessionVersionFor, unnamed } from '../eras/introduction.ts'
import { statelessParams } from '../eras/params.ts'
import {
  type Ask,
  askingMethods,
  type AskReply,
  isInterim,
  respondToInputRequests,
  sendInRounds,
} from '../eras/questions.ts'
import { sessionResultInTurns } from '../eras/results.ts'
import { invalidParams, levelIn, uriIn } from '../eras/session-settings.ts'
import { announcedLists, type AnnouncedList } from '../eras/subscriptions.ts'
import { type Changes, JsonObject } from '../json/object.ts'
import { workOn } from '../json/turns.ts'
import type { Message } from '../message.ts'
import { paramsOf } from '../param-types.ts'
import { metaKey } from '../protocol.ts'
import {
  errorMessage,
  notificationMessage,
  rawErrorMessage,
  requestMessage,
  resultMessage,
} from '../write.ts'
import type { Log } from '../../net/index.ts'
import type { LinkOutcome } from './link.ts'
import { ListenFeed } from './listen-feed.ts'
import { discover } from './probe.ts'
import { reasonOf, LinkRequester } from './requester.ts'

/** Receives messages for the client. */
export interface ClientSide {
  /** Sends a message. `about` is the raw id of the client request to which the message belongs. */
  send(message: Buffer, about?: string): void | Promise<void>
  /** Sends the result of a client request. `id` is the raw request id. */
  respond(id: string, result: Buffer): void | Promise<void>
  /** Ends a client request without a response, because the client cancelled it. */
  drop(about: string): void
}

export interface SessionTranslatorOptions {
  /** Sends a message to the server. Throws if the link has ended. */
  readonly toServer: (message: Buffer) => void
  readonly client: ClientSide
  readonly log: Log
  /** The server's DiscoverResult, if it is already known. */
  readonly discovered?: Buffer | undefined
}

interface Call {
  readonly clientId: string
  readonly stop: AbortController
  /** The client's raw progress token. */
  readonly progressToken: string | undefined
}

const maxCapabilityBytes = 16 * 1024
const noAbilities: Abilities = { elicitation: false, sampling: false, roots: false }

export class SessionTranslator {
  readonly #options: SessionTranslatorOptions
  readonly #requester: LinkRequester
  readonly #feed: ListenFeed
  /** Calls, keyed by the client's raw request id. */
  readonly #calls = new Map<string, Call>()
  /** Calls, keyed by the id of the call's current server request. */
  readonly #rounds = new Map<string, Call>()
  readonly #serverRequests = new Map<string, (reply: AskReply) => void>()
  #nextServerRequest = 1
  #capabilities: Buffer = Buffer.from('{}')
  #abilities: Abilities = noAbilities
  #info = '{"name":"gatehouse","version":"0"}'
  #logLevel: string | undefined
  #lists: readonly AnnouncedList[] = []

  constructor(options: SessionTranslatorOptions) {
    this.#options = options
    this.#requester = new LinkRequester(options.toServer)
    this.#feed = new ListenFeed(this.#requester, { meta: () => this.#meta(), log: options.log })
  }

  #meta(): string {
    return requestMeta(this.#info, this.#capabilities)
  }

  /** Handles a client message. Resolves once the message has been fully processed. Never rejects. */
  async fromClient(message: Message): Promise<void> {
    try {
      if (message.kind === 'notification') this.#onNotification(message)
      else if (message.kind === 'request') await this.#request(message, message.id ?? '')
      else this.#onResponse(message)
    } catch (error) {
      if (message.kind === 'request')
        await this.#options.client.send(errorMessage(message.id, error), message.id)
    }
  }

  #onNotification(message: Message): void {
    if (message.method === 'notifications/initialized') this.#feed.wantLists(this.#lists)
    else if (message.method === 'notifications/cancelled') {
      const id = paramsOf(message).raw('requestId')?.toString()
      if (id !== undefined) this.#calls.get(id)?.stop.abort(cancelled)
    }
    // The stateless era has no other client notifications.
  }

  #onResponse({ id, result, error }: Message): void {
    const settle = id === undefined ? undefined : this.#serverRequests.get(id)
    if (result) settle?.({ result })
    else if (error) settle?.({ error })
  }

  async #request(message: Message, id: string): Promise<void> {
    const { client } = this.#options
    const params = paramsOf(message)
    switch (message.method) {
      case 'initialize':
        return client.send(resultMessage(id, await this.#initialize(params)), id)
      case 'ping':
        return client.send(resultMessage(id, '{}'), id)
      case 'logging/setLevel':
        this.#logLevel = levelIn(params)
        return client.send(resultMessage(id, '{}'), id)
      case 'resources/subscribe':
        if (!(await this.#feed.add(uriIn(params)))) throw new GatehouseError('RESOURCE_NOT_FOUND')
        return client.send(resultMessage(id, '{}'), id)
      case 'resources/unsubscribe':
        await this.#feed.remove(uriIn(params))
        return client.send(resultMessage(id, '{}'), id)
      default:
        return this.#call(message.method, params, id)
    }
  }

  async #initialize(params: JsonObject): Promise<Buffer> {
    const capabilities = params.object('capabilities')
    if (capabilities && capabilities.bytes.length > maxCapabilityBytes)
      throw invalidParams(`the declared capabilities have more than ${maxCapabilityBytes} bytes`)
    if (capabilities) {
      this.#capabilities = withoutTasks(capabilities)
      this.#abilities = abilitiesIn(capabilities)
    }
    const info = params.object('clientInfo')
    if (info && info.bytes.length <= maxCapabilityBytes) this.#info = info.bytes.toString()
    const discovery = this.#options.discovered ?? (await discover(this.#requester, this.#info))
    if (!discovery) throw new GatehouseError('BACKEND_PROTOCOL')
    const server = new JsonObject(discovery)
    const offered = server.object('capabilities')
    this.#lists = announcedLists(offered)
    const version = sessionVersionFor(params.text('protocolVersion') ?? '')
    const name = server.object('_meta')?.object(metaKey.serverInfo)?.bytes.toString() ?? unnamed
    const instructions = server.raw('instructions')?.toString()
    return Buffer.from(
      `{"protocolVersion":"${version}","capabilities":${offered ? withoutTasks(offered).toString() : '{}'},"serverInfo":${name}${instructions === undefined ? '' : `,"instructions":${instructions}`}}`,
    )
  }

  async #call(method: string, params: JsonObject, clientId: string): Promise<void> {
    const { client } = this.#options
    if (this.#calls.has(clientId))
      throw new GatehouseError('INVALID_REQUEST', { detail: 'a request with this id is in flight' })
    const progressToken = params.object('_meta')?.raw('progressToken')?.toString()
    const call: Call = { clientId, stop: new AbortController(), progressToken }
    this.#calls.set(clientId, call)
    try {
      const { result, error } = await this.#callInRounds(method, params, call)
      if (result) await client.respond(clientId, await workOn(result, sessionResultInTurns(result)))
      else await client.send(rawErrorMessage(clientId, sessionError(method, error)), clientId)
    } catch (error) {
      if (call.stop.signal.reason === cancelled) client.drop(clientId)
      else throw error
    } finally {
      this.#calls.delete(clientId)
    }
  }

  #callInRounds(method: string, params: JsonObject, call: Call): Promise<LinkOutcome> {
    const ask = (request: Ask, signal: AbortSignal): Promise<AskReply> => this.#ask(request, signal, call)
    return sendInRounds(
      (changes) => this.#round(method, params, changes, call),
      ({ result }) => {
        if (!result || !isInterim(result)) return undefined
        if (!askingMethods.has(method)) throw new GatehouseError('BACKEND_PROTOCOL')
        return result
      },
      (interim) => respondToInputRequests(interim, ask, call.stop.signal),
    )
  }

  async #round(method: string, params: JsonObject, changes: Changes, call: Call): Promise<LinkOutcome> {
    const id = this.#requester.newId()
    const outgoing = {
      params,
      changes,
      progress: call.progressToken !== undefined,
      logLevel: this.#logLevel,
    }
    const identity = { info: this.#info, capabilities: this.#capabilities }
    this.#rounds.set(id, call)
    try {
      const own = statelessParams(outgoing, identity, id)
      return await this.#requester.request(id, method, own, call.stop.signal)
    } finally {
      this.#rounds.delete(id)
    }
  }

  #ask(request: Ask, signal: AbortSignal, { clientId }: Call): Promise<AskReply> {
    requireAbility(this.#abilities, request)
    const { client } = this.#options
    const id = `"gatehouse-${this.#nextServerRequest++}"`
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        this.#serverRequests.delete(id)
        signal.removeEventListener('abort', onAbort)
      }
      const onAbort = (): void => {
        settled()
        const params = `{"requestId":${id},"reason":"the server request was withdrawn"}`
        void client.send(notificationMessage('notifications/cancelled', params), clientId)
        reject(reasonOf(signal))
      }
      this.#serverRequests.set(id, (reply) => {
        settled()
        resolve(reply)
      })
      signal.addEventListener('abort', onAbort, { once: true })
      void client.send(requestMessage(id, request.method, request.params), clientId)
    })
  }

  fromServer(message: Message): void | Promise<void> {
    if (this.#requester.take(message)) return undefined
    if (message.kind === 'request') {
      this.#options.log.warn('the server sent a request, which its protocol revision does not allow')
      return undefined
    }
    const { client } = this.#options
    if (message.method === 'notifications/progress') return this.#progress(message)
    if (message.method === 'notifications/message') {
      // The message does not identify its request, so use the newest request that accepts messages.
      return client.send(message.bytes, [...this.#calls.keys()].at(-1))
    }
    const notification = this.#feed.take(message)
    return notification === undefined || notification === 'handled' ? undefined : client.send(notification)
  }

  #progress(message: Message): void | Promise<void> {
    const params = paramsOf(message)
    const call = this.#rounds.get(params.raw('progressToken')?.toString() ?? '')
    if (call?.progressToken === undefined) return undefined
    const own = params.with({ progressToken: call.progressToken })
    return this.#options.client.send(notificationMessage(message.method, own), call.clientId)
  }

  /** Fails all pending requests after the link has ended. */
  end(error: Error): void {
    this.#feed.close()
    for (const { stop } of this.#calls.values()) stop.abort(error)
    this.#requester.failAll(error)
  }
}

const cancelled = new Error('the client cancelled the request')
