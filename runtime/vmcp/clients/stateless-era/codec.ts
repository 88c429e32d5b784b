/**
 * Stateless-era codec for clients. Every POST fully describes its sender. Gatehouse keeps no state between two POSTs,
 * except for calls that are waiting for answers.
 * Source: MCP 2026-07-28, basic, streamable HTTP, patterns.
 */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../../schemas/index.ts'
import { continueTrace, requestTrace } from '../../../observe/index.ts'
import {
  askingMethods,
  checkParamTypes,
  type ClientMessage,
  checkStateless,
  completeResult,
  completeResultInTurns,
  inTurns,
  largeBytes,
  errorObject,
  inputRequired,
  JsonObject,
  logLevels,
  type Message,
  MessageError,
  type PassedMembers,
  rawErrorMessage,
  requireAbility,
  requireVisits,
  resultMessage,
  statelessError,
  type StatelessMeta,
  statusOf,
  allVersions,
  visitRequests,
  withServerInfo,
} from '../../../mcp/index.ts'
import type { Caller, InFlight } from '../../../net/index.ts'
import { type ExtensionSet, skillsExtensionId } from '../../model/extensions.ts'
import { invalidRequestStateError, type Operation } from '../../model/operation.ts'
import type { OperationClient } from '../../model/session.ts'
import type { Outcome } from '../../model/outcome.ts'
import { type Advertise, advertisedMembers } from '../advertised.ts'
import type { ClientResponse } from '../response.ts'
import { abilitiesOf, canonicalJson, selectHeaders, type HeaderAllowlist } from '../../model/client.ts'
import type { VmcpExchange } from '../../model/exchange.ts'
import { isSkillMethod } from '../../features/skills/index.ts'
import { isTaskMethod } from '../../features/tasks/index.ts'
import { LiveOperation } from '../live-operation.ts'
import type { Listeners } from './listeners.ts'
import { Reply } from '../reply.ts'
import { needsHttpStatus } from '../session-era/protocol.ts'
import type { StateBinding, StateContent, StateSealer } from './sealed-state.ts'
import { type ParkedCalls, StatelessCall } from './call.ts'

export interface StatelessEdgeOptions {
  readonly perform: (operation: Operation) => Promise<Outcome>
  /** Checks the headers that mirror a tool call's arguments. Rejects with HEADER_MISMATCH. */
  readonly checkHeaders: (
    client: OperationClient,
    params: JsonObject,
    headers: IncomingHttpHeaders,
  ) => Promise<void>
  readonly serverInfo: string
  readonly advertise: Advertise
  /** Returns the enabled protocol extensions. */
  readonly extensions: () => ExtensionSet
  readonly allowlist: HeaderAllowlist
  readonly responses: InFlight<ClientResponse>
  readonly sealer: StateSealer
  readonly parked: ParkedCalls
  readonly listeners: Listeners
  /** Prefix for the state of calls that are parked in this process. */
  readonly tag: string
}

/** The prefix that identifies the worker in which a call is parked. The rest of the state is sealed. */
const workerTagPattern = /^w\d+\./
const noStore = { 'cache-control': 'private, no-store' }
const knownMethods: ReadonlySet<string> = new Set([
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'prompts/list',
  'prompts/get',
  'completion/complete',
])

export class StatelessEdge {
  readonly #options: StatelessEdgeOptions
  /** The stateless form of each list result. */
  readonly #lists = new WeakMap<Buffer, Buffer>()

  constructor(options: StatelessEdgeOptions) {
    this.#options = options
  }

  async post(exchange: VmcpExchange, { message, params }: ClientMessage, caller: Caller): Promise<void> {
    if (message.kind === 'notification') {
      exchange.res.writeHead(202).end()
      return
    }
    if (message.kind !== 'request' || message.id === undefined) {
      throw new MessageError('INVALID_REQUEST', message.id, {
        detail: 'Invalid Request: expected a request or notification',
      })
    }
    const meta = checkStateless(message, params, exchange.req.headers, allVersions)
    checkParamTypes(message.method, params)
    if (meta.logLevel !== undefined && !logLevels.includes(meta.logLevel)) {
      throw new MessageError('INVALID_PARAMS', message.id, { detail: 'Invalid params: unknown log level' })
    }
    const client = this.#client(exchange, meta, caller, message.id)
    if (message.method === 'subscriptions/listen') {
      await this.#options.listeners.open(exchange, message.id, params, client)
      return
    }
    const discovered = message.method === 'server/discover' ? await this.#discover(client) : undefined
    const reply = new Reply(exchange.req, exchange.res, { headers: noStore })
    if (discovered) await this.#finish(reply, message.id, message.method, discovered)
    else if (this.#isKnown(message.method))
      await this.#operate(exchange, message, message.id, params, client, meta, reply)
    else throw new MessageError('METHOD_NOT_FOUND', message.id)
  }

  #isKnown(method: string): boolean {
    if (knownMethods.has(method) || isTaskMethod(method, 'stateless')) return true
    const extensions = this.#options.extensions()
    return (
      (isSkillMethod(method) && extensions.has(skillsExtensionId)) || extensions.routeOf(method) !== undefined
    )
  }

  #client(exchange: VmcpExchange, meta: StatelessMeta, caller: Caller, id: string): OperationClient {
    return {
      era: 'stateless',
      protocolVersion: meta.protocolVersion,
      caller,
      abilities: abilitiesOf(meta.clientCapabilities, id, 'stateless', this.#options.extensions()),
      info: meta.clientInfo,
      headers: selectHeaders(exchange.req.headers, this.#options.allowlist.passthroughHeaders),
      session: undefined,
    }
  }

  async #discover(client: OperationClient): Promise<Buffer> {
    const members = advertisedMembers(await this.#options.advertise(client))
    return Buffer.from(`{"supportedVersions":${JSON.stringify(allVersions)},${members}}`)
  }

  async #operate(
    exchange: VmcpExchange,
    message: Message,
    id: string,
    params: JsonObject,
    client: OperationClient,
    meta: StatelessMeta,
    reply: Reply,
  ): Promise<void> {
    const { responses } = this.#options
    const pendingResponse = responses.add(reply)
    try {
      const binding = new RequestBinding(client.caller.key, message.method, params)
      const state = params.text('requestState')
      const call =
        state === undefined
          ? this.#start(message, params, client, meta, exchange.req.headers)
          : await this.#resumeCall(state, exchange, message, params, client, meta, binding)
      await this.#follow(call, id, message.method, reply, binding)
    } catch (error) {
      if (needsHttpStatus(error) && !reply.streaming) throw error
      this.#fail(reply, id, error)
    } finally {
      responses.remove(pendingResponse)
    }
  }

  /** Returns the call for a client's state. The result is a new call, or the parked call with the client's answers. */
  async #resumeCall(
    state: string,
    exchange: VmcpExchange,
    message: Message,
    params: JsonObject,
    client: OperationClient,
    meta: StatelessMeta,
    binding: StateBinding,
  ): Promise<StatelessCall> {
    const { headers } = exchange.req
    const content = this.#options.sealer.open(state.replace(workerTagPattern, ''), binding)
    if (!content) throw invalidRequestStateError()
    if (content.trace !== undefined) continueTrace(content.trace)
    if (content.kind === 'again') {
      requireVisits(params.object('inputResponses'))
      const again = new JsonObject(params.with({ requestState: undefined, inputResponses: undefined }))
      return this.#start(message, again, client, meta, headers)
    }
    if (content.kind === 'pass') {
      const own = new JsonObject(params.with({ requestState: content.value }))
      return this.#start(message, own, client, meta, headers, content.backend)
    }
    if (message.method === 'tools/call') await this.#options.checkHeaders(client, params, headers)
    const call = this.#options.parked.take(content.value, binding.caller)
    if (!call) {
      throw new GatehouseError('INVALID_PARAMS', {
        detail: 'Invalid params: the request is no longer waiting for answers; start a new request',
      })
    }
    call.acceptAnswers(params.object('inputResponses'))
    return call
  }

  #seal(content: StateContent, binding: StateBinding): string {
    return this.#options.sealer.seal({ ...content, trace: requestTrace() }, binding)
  }

  #start(
    message: Message,
    params: JsonObject,
    client: OperationClient,
    meta: StatelessMeta,
    headers: IncomingHttpHeaders,
    stateFor?: string,
  ): StatelessCall {
    return new StatelessCall(
      client.caller.key,
      (ask) =>
        new LiveOperation({
          message,
          params,
          client,
          headers,
          logLevel: meta.logLevel,
          sendsLogs: meta.logLevel !== undefined,
          stateFor,
          sink: { send: () => false, ask },
        }),
      this.#options.perform,
    )
  }

  /** Runs a call until it ends or asks a question, and responds to one HTTP request. */
  async #follow(
    call: StatelessCall,
    id: string,
    method: string,
    reply: Reply,
    binding: StateBinding,
  ): Promise<void> {
    const { live } = call
    const { ask } = live.sink
    live.sink = {
      send: (bytes) => reply.send(bytes),
      ask,
      streamResult: () => reply.streamResult(id, 'stateless'),
    }
    reply.onClose = () => call.cancel(new Error('the client disconnected'))
    try {
      const step = await call.step()
      if (step.kind === 'ask') {
        live.sink = { send: () => false, ask }
        reply.onClose = undefined
        this.#options.parked.park(call)
        const state = this.#options.tag + this.#seal({ kind: 'parked', value: call.id }, binding)
        reply.end(resultMessage(id, inputRequired(step.requests, state, this.#options.serverInfo)))
      } else if (step.outcome.kind === 'input')
        this.#finishInput(reply, id, method, step.outcome, call, binding)
      else if (step.outcome.kind === 'task')
        reply.end(resultMessage(id, withServerInfo(step.outcome.result, this.#options.serverInfo)))
      else if (step.outcome.kind === 'error')
        this.#finishError(reply, id, method, step.outcome.error, call, binding)
      else await this.#finish(reply, id, method, step.outcome.result, step.outcome.passed)
    } finally {
      reply.onClose = undefined
    }
  }

  /**
   * Forwards the questions of a stateless backend and seals the backend's state. If the backend returned no state, the
   * client still gets sealed state, because the answers are valid only for this backend.
   */
  #finishInput(
    reply: Reply,
    id: string,
    method: string,
    { result, backend = '' }: Outcome & { readonly kind: 'input' },
    call: StatelessCall,
    binding: StateBinding,
  ): void {
    if (!askingMethods.has(method)) throw new GatehouseError('BACKEND_PROTOCOL')
    const required = new JsonObject(result)
    const requests = required.object('inputRequests')
    for (const [, raw] of requests?.entries() ?? []) {
      const question = raw[0] === 0x7b ? new JsonObject(raw) : undefined
      const asked = question?.text('method')
      if (!question || asked === undefined) throw new GatehouseError('BACKEND_PROTOCOL')
      requireAbility(call.operation.client.abilities, { method: asked, params: question.raw('params') })
    }
    const state = required.text('requestState') === undefined ? undefined : required.raw('requestState')
    if (!requests && state === undefined) throw new GatehouseError('BACKEND_PROTOCOL')
    const sealed = this.#seal({ kind: 'pass', value: state?.toString(), backend }, binding)
    reply.end(resultMessage(id, inputRequired(requests?.bytes, sealed, this.#options.serverInfo)))
  }

  async #finish(
    reply: Reply,
    id: string,
    method: string,
    result: Buffer,
    passed?: PassedMembers,
  ): Promise<void> {
    const complete = this.#complete(method, result)
    reply.endResult(id, complete instanceof Promise ? await complete : complete, passed)
  }

  /** Returns the stateless form of a result. Lists are cached, because many requests share one page. */
  #complete(method: string, result: Buffer): Buffer | Promise<Buffer> {
    const { serverInfo } = this.#options
    if (!method.endsWith('/list'))
      return result.length < largeBytes
        ? completeResult(method, result, serverInfo)
        : inTurns(completeResultInTurns(method, result, serverInfo))
    const known = this.#lists.get(result)
    if (known) return known
    const complete = completeResult(method, result, serverInfo)
    this.#lists.set(result, complete)
    return complete
  }

  /** Forwards a backend's error. If the error requires the user to visit a URL, asks the client to open that URL. */
  #finishError(
    reply: Reply,
    id: string,
    method: string,
    error: Buffer,
    call: StatelessCall,
    binding: StateBinding,
  ): void {
    const { abilities } = call.operation.client
    const visits = askingMethods.has(method) ? visitRequests(error, abilities) : undefined
    if (visits) {
      const state = this.#seal({ kind: 'again' }, binding)
      reply.end(resultMessage(id, inputRequired(visits, state, this.#options.serverInfo)))
      return
    }
    const translated = statelessError(error, call.operation.params.text('uri'))
    reply.end(rawErrorMessage(id, translated), statusOf(new JsonObject(translated).value('code')))
  }

  #fail(reply: Reply, id: string, error: unknown): void {
    const object = errorObject(error)
    reply.end(rawErrorMessage(id, JSON.stringify(object)), statusOf(object.code))
  }
}

/** Computes the digest only when state is sealed or opened, because most requests have no state. */
class RequestBinding implements StateBinding {
  readonly caller: string
  readonly #method: string
  readonly #params: JsonObject
  #request: string | undefined

  constructor(caller: string, method: string, params: JsonObject) {
    this.caller = caller
    this.#method = method
    this.#params = params
  }

  /** Digest of the method, the subject and the arguments. The digest is the same when a client repeats a request. */
  get request(): string {
    this.#request ??= this.#computeDigest()
    return this.#request
  }

  #computeDigest(): string {
    const params = this.#params
    const args = params.raw('arguments')
    const isLarge = args !== undefined && args.length > maxSortedBytes
    const rest = isLarge ? hash('sha256', args, 'base64url') : (params.value('arguments') ?? null)
    const subject = params.text('name') ?? params.text('uri') ?? null
    return hash('sha256', canonicalJson([this.#method, subject, rest]), 'base64url')
  }
}

/**
 * Up to this size, the order of members in the arguments does not matter. The client must repeat larger arguments
 * exactly.
 */
const maxSortedBytes = 256 * 1024
