/**
 * A connection to a REST service. The gateway itself is the HTTP client: a tool call becomes the HTTP request that
 * the OpenAPI document describes, and the response becomes the tool's result.
 *
 * Requests take the same path as requests to MCP servers, with the same credentials, address rules, limits and metrics.
 * The base URL and the credentials come from the configuration, and arguments cannot change them.
 */
import {
  exactJson,
  fieldsOf,
  GatehouseError,
  isFields,
  type OpenApiApiKeyQuery,
  type OpenApiResponse,
  timerMs,
} from '../../../../schemas/index.ts'
import { buildRequest, type BuiltRequest, type RequestPlan } from '../../../../schemas/openapi/index.ts'
import { rpcCode, statelessVersion } from '../../../mcp/index.ts'
import { type AnySignal, Deadline } from '../../../net/index.ts'
import type { OutgoingRequest } from '../../../outgoing/index.ts'
import type { Events } from '../../../observe/index.ts'
import { type Outcome, toolErrorOutcome } from '../../model/outcome.ts'
import type { BackendConnection, Request, ServerInfo } from '../connection.ts'
import { toolServer } from '../server-info.ts'
import { exchangeWithBackend } from '../transport/http.ts'
import { describeRequest, sendToBackend } from '../transport/send.ts'
import { errorOf, HttpStatusError } from '../transport/status-error.ts'
import type { SentHeaders } from '../transport/backend-answer.ts'
import type { ChannelTarget, Sender } from '../transport/target.ts'
import type { ConvertedTool, ConvertedTools } from './convert.ts'
import type { RestDocument } from './documents.ts'
import { ReadableFailure } from './readable-failure.ts'
import { type CheckOutput, OutputCheck } from './output-check.ts'
import { resultOf } from './result.ts'

/** Maximum size of one page of the tool list, except for a page with a single tool. */
const maxPageBytes = 256 * 1024
/** Applies if the configuration has no `response`. Equal to the default of `response.maxBytes`. */
const defaultMaxBytes = 4 * 1024 * 1024
/** Maximum number of bytes to read from an unsuccessful response. */
const maxErrorBytes = 16 * 1024

/** Methods without side effects. Only these methods are retried, and only their redirects are followed. */
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/**
 * Statuses with which a gateway in front of the service reports that the service is down. Other errors, such as 500, can
 * depend on the arguments, so one caller could otherwise make the service unavailable to all callers.
 */
const gatewayStatuses: ReadonlySet<number> = new Set([502, 503, 504])

export interface RestOptions {
  readonly target: ChannelTarget
  readonly document: RestDocument
  /** Name of the backend. */
  readonly name: string
  readonly settings: Partial<OpenApiResponse>
  readonly apiKeyQuery?: OpenApiApiKeyQuery | undefined
  readonly checkOutput: CheckOutput
  readonly events: Pick<Events, 'emit'>
}

export class RestConnection implements BackendConnection {
  readonly #options: RestOptions
  /** Parsed plans of called tools. A changed document creates new tools, so its plans are parsed again. */
  readonly #plans = new WeakMap<ConvertedTool, RequestPlan>()
  readonly #output: OutputCheck
  #busy = 0

  constructor(options: RestOptions) {
    this.#options = options
    this.#output = new OutputCheck(options)
  }

  get inFlightCount(): number {
    return this.#busy
  }

  /** Waits for the document. The service itself is not contacted. */
  async open(_sender: Sender, signal: AnySignal): Promise<ServerInfo> {
    await this.#options.document.ready(signal)
    return toolServer(statelessVersion)
  }

  /**
   * Checks that the document can be used and that the service is reachable. Sends HEAD for the base URL without
   * credentials. Any response passes the check, except from a gateway that cannot reach the service.
   */
  async check(signal: AnySignal): Promise<void> {
    const { target, document } = this.#options
    await document.ready(signal)
    const response = await exchangeWithBackend(target.dispatcher, {
      method: 'HEAD',
      url: target.url,
      headers: { accept: '*/*' },
      signal,
      repeatable: true,
      refusesRedirects: true,
      discardsBody: true,
      maxErrorBytes,
    })
    if (gatewayStatuses.has(response.status)) throw new HttpStatusError(response.status)
  }

  async request(request: Request): Promise<Outcome> {
    const tools = await this.#options.document.ready(request.signal)
    if (request.method === 'tools/list') return pageOf(tools, request.params.text('cursor'))
    if (request.method !== 'tools/call') return errorOutcome(rpcCode.methodNotFound, 'method not found')
    const name = memberOf(request, 'name')
    const tool = tools.tools.find((one) => one.name === name)
    if (!tool) return errorOutcome(rpcCode.invalidParams, 'unknown tool')
    this.#busy++
    try {
      return await this.#call(request, tool)
    } finally {
      this.#busy--
    }
  }

  async #call(request: Request, tool: ConvertedTool): Promise<Outcome> {
    const { settings, apiKeyQuery } = this.#options
    const sent: SentHeaders = []
    // If calls shared this list, a mask in one caller's error could reveal another caller's header.
    const target = { ...this.#options.target, sentHeaders: sent }
    const { maxBytes = defaultMaxBytes, timeout } = settings
    const timeoutMs = timeout === undefined ? request.timeoutMs : timerMs(timeout)
    const plan = this.#planOf(tool)
    const built = builtRequest(plan, memberOf(request, 'arguments'))
    const isSafe = safeMethods.has(plan.method)
    const deadline = new Deadline(timeoutMs, request.signal)
    try {
      const response = await sendToBackend(target, request.sender, {
        method: plan.method,
        url: urlOf(target.url, built),
        headers: headersOf(built),
        body: built.body === undefined ? undefined : Buffer.from(built.body),
        signal: deadline,
        rpcMethod: request.method,
        delivery: request.delivery,
        limit: lowerLimit(request, maxBytes),
        repeatable: isSafe,
        refusesRedirects: !isSafe,
        maxErrorBytes,
        finish: apiKeyQuery && ((outgoing) => withApiKey(outgoing, apiKeyQuery)),
      })
      if (response.status === 401) throw errorOf(response, describeRequest(target, request.method))
      const outcome = await resultOf(response, {
        plan,
        tool: tool.name,
        request,
        secrets: sent.map((all) => withoutArguments(all, built, plan)),
        output: this.#output,
      })
      if (gatewayStatuses.has(response.status))
        throw new ReadableFailure('BACKEND_FAILED', `HTTP ${response.status}`, outcome)
      return outcome
    } finally {
      deadline.end()
    }
  }

  #planOf(tool: ConvertedTool): RequestPlan {
    const known = this.#plans.get(tool)
    if (known) return known
    const plan: RequestPlan = JSON.parse(tool.plan)
    this.#plans.set(tool, plan)
    return plan
  }

  notify(): void {
    // REST services receive no notifications.
  }

  setLogLevel(): void {
    // REST services send no log messages.
  }

  /** Stops watching the document. No connection stays open between requests. */
  async close(): Promise<void> {
    this.#options.document.close()
  }
}

/** Returns a member of the params as the backend receives it. */
function memberOf({ params, changes }: Request, name: string): unknown {
  const changed = changes?.[name]
  const raw = changed ?? params.raw(name)
  return raw === undefined ? undefined : exactJson(raw.toString())
}

/** Throws ReadableFailure for invalid arguments. The message contains the name of the argument and the rule. */
function builtRequest(plan: RequestPlan, args: unknown): BuiltRequest {
  try {
    if (args !== undefined && !isFields(args))
      throw new GatehouseError('INVALID_PARAMS', { detail: 'arguments must be an object' })
    return buildRequest(plan, fieldsOf(args))
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    throw new ReadableFailure(error.code, error.message, toolErrorOutcome(error.message))
  }
}

/** Joins the base URL with the path and the query of an operation. */
function urlOf(base: URL, { path, query }: BuiltRequest): URL {
  const expected = base.pathname.replace(/\/+$/, '') + path
  const url = new URL(`${expected}${query === '' ? '' : `?${query}`}`, base.origin)
  if (url.origin !== base.origin || url.pathname !== expected)
    throw new GatehouseError('INVALID_PARAMS', { detail: 'the arguments would change the address' })
  return url
}

/** Moves the credential from its header to the query. The conversion ensures that no argument has the same name. */
function withApiKey(
  { headers, url }: OutgoingRequest,
  { header, parameter }: OpenApiApiKeyQuery,
): Pick<OutgoingRequest, 'url' | 'headers'> {
  const { [header.toLowerCase()]: value, ...others } = headers
  if (value === undefined) return { url, headers: others }
  const moved = new URL(url)
  // Appends text, because searchParams would encode the other parameters again.
  const pair = new URLSearchParams([[parameter, value]]).toString()
  moved.search = moved.search === '' ? pair : `${moved.search}&${pair}`
  return { url: moved, headers: others }
}

/** Returns the headers of a call. The conversion ensures that no argument sets a configured header. */
function headersOf({ headers }: BuiltRequest): Record<string, string> {
  const own = headers.map(([name, value]) => [name.toLowerCase(), value])
  return { accept: '*/*', ...Object.fromEntries(own) }
}

/** Leaves out the headers that the caller's arguments set, because an error may repeat arguments. */
function withoutArguments(
  sent: Readonly<Record<string, string>>,
  { headers }: BuiltRequest,
  { inputs }: RequestPlan,
): Readonly<Record<string, string>> {
  const fixed = inputs.filter((input) => input.in === 'header' && input.fixed !== undefined)
  const hidden = new Set(fixed.map(({ name }) => name.toLowerCase()))
  const open = new Set(headers.map(([name]) => name.toLowerCase()).filter((name) => !hidden.has(name)))
  return Object.fromEntries(Object.entries(sent).filter(([name]) => !open.has(name)))
}

function lowerLimit({ limit }: Request, maxBytes: number): NonNullable<Request['limit']> {
  if (limit && limit.bytes <= maxBytes) return limit
  return {
    bytes: maxBytes,
    error: () =>
      new GatehouseError('BACKEND_RESULT_TOO_LARGE', {
        detail: `the response is larger than response.maxBytes allows (${maxBytes} bytes)`,
      }),
  }
}

/** Returns the page of the tool list that starts at the cursor, which is the number of the first tool. */
function pageOf({ tools }: ConvertedTools, cursor: string | undefined): Outcome {
  const start = cursor === undefined ? 0 : Number(cursor)
  if (!Number.isSafeInteger(start) || start < 0 || start > tools.length)
    return errorOutcome(rpcCode.invalidParams, 'invalid cursor')
  const page: string[] = []
  let size = 0
  for (const { definition } of tools.slice(start)) {
    size += definition.length
    if (page.length > 0 && size > maxPageBytes) break
    page.push(definition)
  }
  const next = start + page.length
  const more = next < tools.length ? `,"nextCursor":"${next}"` : ''
  return { kind: 'result', result: Buffer.from(`{"tools":[${page.join(',')}]${more}}`) }
}

function errorOutcome(code: number, message: string): Outcome {
  return { kind: 'error', error: Buffer.from(JSON.stringify({ code, message })) }
}
