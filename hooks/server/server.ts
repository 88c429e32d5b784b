/**
 * HTTP routes in front of the registry and admission. Only this file depends on Express.
 *
 *   POST /hooks/<plural>/sync, /hooks/<plural>/customize   Metacontroller (hooks v2)
 *   POST /validate                                         AdmissionReview v1, all kinds
 *   GET  /healthz, /readyz, /metrics
 *
 * Bodies contain Secrets, so no log or error contains any part of a body. Callers of /hooks present a bearer token when
 * one is configured; callers of /validate present a client certificate when a CA is configured. With two ports, each
 * serves one group of callers. A NetworkPolicy can then admit Metacontroller to one port; the API server, which no
 * policy can select, uses the other port.
 * Source: Metacontroller hook HTTP contract; Kubernetes admission.k8s.io/v1; RFC 9457 for errors.
 */
import { timingSafeEqual } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import { GatehouseError } from '../../schemas/index.ts'
import type { QueueRequester } from './fair-queue.ts'
import { type HookCall, evaluate, type EvaluatedCall } from './evaluate.ts'
import type { EventSink } from './events.ts'
import type { HookEvent } from '../sync/protocol.ts'
import { type HookLog, placeOf } from './log.ts'
import type { HookMetrics } from './metrics.ts'
import type { HookRegistry } from '../registry/hook-registry.ts'
import { type CalledHook, RejectionLog } from './refusals.ts'
import { type Body, type BodyLimits, requestBody } from './request-body.ts'
import { type EvaluationWorker, WorkerFailure } from './workers.ts'

/** A group of callers: Metacontroller (/hooks) or the API server (/validate). */
export type HookService = 'hooks' | 'admission'

export interface ServerOptions {
  readonly registry: HookRegistry
  readonly metrics: HookMetrics
  readonly log: HookLog
  /** Returns the time in seconds from a monotonic clock. */
  readonly seconds: () => number
  /** Returns the reason why the server is not ready; undefined when it is. */
  readonly notReady: () => string | undefined
  /** Groups to serve. Defaults to both groups. */
  readonly serves?: readonly HookService[]
  /** Returns the bearer tokens that /hooks accepts. An empty list rejects every caller. */
  readonly tokens?: () => readonly string[]
  /** True to require, on /validate, a client certificate that the listener's CA signed. */
  readonly clientCertificate?: boolean
  /**
   * Workers that evaluate large bodies, one per group of callers. Without workers, the main thread evaluates these
   * bodies.
   */
  readonly workers?: { readonly hooks: EvaluationWorker; readonly reviews: EvaluationWorker }
  /** Receives the events that result from a sync. The server does not wait for the sink. */
  readonly events?: EventSink
}

const mebibyte = 1024 * 1024

/**
 * A Metacontroller request contains every related object in a namespace. A review contains an object before and after
 * the change, each of at most 3 MiB. The budgets are separate, because untrusted clients, which can only cause reviews,
 * must not block Metacontroller. The measured total stays below 512 MiB (test/security/hooks/memory.test.ts).
 */
const hookLimits: BodyLimits = {
  bytes: 24 * mebibyte,
  values: 1_000_000,
  depth: 200,
  requests: 64,
  arriving: 256,
  bytesInFlight: 24 * mebibyte,
}
const reviewLimits: BodyLimits = {
  bytes: 8 * mebibyte,
  values: 100_000,
  depth: 200,
  requests: 64,
  arriving: 256,
  bytesInFlight: 12 * mebibyte,
}

/** Builds the Express application. */
export function hooksApp(options: ServerOptions): Express {
  const app = express()
  const refusals = new RejectionLog(options)
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.get('/healthz', (_request, response) => text(response, 200, 'ok'))
  app.get('/readyz', (_request, response) => {
    const reason = options.notReady()
    text(response, reason === undefined ? 200 : 503, reason ?? 'ok')
  })
  app.get('/metrics', (_request, response) => {
    response.type('text/plain; version=0.0.4; charset=utf-8').send(options.metrics.text())
  })
  const { serves = ['hooks', 'admission'] } = options
  if (serves.includes('hooks')) serveHooks(app, options)
  if (serves.includes('admission')) serveReviews(app, options)
  app.use(() => {
    throw new GatehouseError('NOT_FOUND')
  })
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    respondWithError(options, refusals, error, request, response),
  )
  return app
}

// Accepts any content type as JSON, because Metacontroller always sends JSON.
function serveHooks(app: Express, options: ServerOptions): void {
  const path = '/hooks/:plural/:hook'
  app.post(
    path,
    identifyHook(options),
    authorize(options),
    requestBody(hookLimits),
    (request: Request, response: Response) => hookResponse(options, request, response),
  )
  app.all(path, onlyPost)
}

function serveReviews(app: Express, options: ServerOptions): void {
  app.post(
    '/validate',
    identifyReview(options),
    requestBody(reviewLimits),
    (request: Request, response: Response) => reviewResponse(options, request, response),
  )
  app.all('/validate', onlyPost)
}

function onlyPost(_request: Request, response: Response): void {
  response.set('allow', 'POST')
  throw new GatehouseError('METHOD_NOT_ALLOWED')
}

const review: CalledHook = { kind: 'AdmissionReview', hook: 'validate' }

/** Rejects unknown hooks before the body is read. */
function identifyHook({ registry }: ServerOptions) {
  return function identifyHook(request: Request, response: Response, next: NextFunction): void {
    const { plural, hook } = request.params
    const entry = registry.byPlural(String(plural))
    if (!entry || (hook !== 'sync' && hook !== 'customize')) throw new GatehouseError('NOT_FOUND')
    response.locals['called'] = { kind: entry.kind, hook } satisfies CalledHook
    next()
  }
}

/**
 * The listener requests a certificate but accepts connections without one, because probes on the same port do not
 * present one.
 */
function identifyReview({ clientCertificate = false }: ServerOptions) {
  return function identifyReview({ socket }: Request, response: Response, next: NextFunction): void {
    response.locals['called'] = review
    // A certificate belongs to its connection, so a client with a new certificate must reconnect.
    if (clientCertificate && !(socket instanceof TLSSocket && socket.authorized))
      throw new GatehouseError('UNAUTHENTICATED', { headers: { connection: 'close' } })
    next()
  }
}

async function hookResponse(options: ServerOptions, request: Request, response: Response): Promise<void> {
  const { plural, hook } = request.params
  const entry = options.registry.byPlural(String(plural))
  if (!entry || (hook !== 'sync' && hook !== 'customize')) throw new GatehouseError('NOT_FOUND')
  response.locals['measure'] = measure(options, entry.kind, hook)
  const call: HookCall = { hook, plural: entry.plural, events: options.events !== undefined }
  const {
    text: json,
    events,
    eventsFailed,
  } = await evaluateCall(options, options.workers?.hooks, call, request, response)
  response.type('json').send(json)
  finish(response, 200)
  if (eventsFailed || !report(options.events, events))
    options.log('warn', 'building an event failed', { kind: entry.kind })
}

/**
 * Emits the events of a sync after its response. Returns false when the sink throws, which must not affect the
 * response.
 */
function report(sink: EventSink | undefined, events: readonly HookEvent[]): boolean {
  try {
    for (const event of events) sink?.emit(event)
    return true
  } catch {
    return false
  }
}

async function reviewResponse(options: ServerOptions, request: Request, response: Response): Promise<void> {
  response.locals['measure'] = measure(options, review.kind, review.hook)
  const call: HookCall = { hook: 'validate' }
  const {
    text: json,
    kind,
    denied,
  } = await evaluateCall(options, options.workers?.reviews, call, request, response)
  if (denied) options.metrics.recordDenied(kind)
  response.type('json').send(json)
  finish(response, 200)
}

/** Limits for evaluation on the main thread. Even a hostile body of this size is evaluated quickly. */
const smallBytes = 16 * 1024
const smallValues = 1_000

async function evaluateCall(
  { registry }: ServerOptions,
  worker: EvaluationWorker | undefined,
  call: HookCall,
  request: Request,
  response: Response,
): Promise<EvaluatedCall> {
  const { bytes, size, values }: Body = request.body
  request.body = undefined
  const isSmall = size <= smallBytes && values <= smallValues
  if (!worker || (isSmall && !isExpensive(registry, call))) {
    return evaluate(registry, call, Buffer.from(bytes.buffer, 0, size).toString('utf8'))
  }
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const requester =
    call.hook === 'validate' ? requesterOf(bytes.subarray(0, Math.min(size, headBytes)), request) : undefined
  return worker.run({ call, body: bytes, size }, gone.signal, requester)
}

/** True for a sync that can take long even when its request is small. */
function isExpensive(registry: HookRegistry, call: HookCall): boolean {
  return call.hook === 'sync' && registry.byPlural(call.plural)?.isExpensive === true
}

/** Number of leading bytes to search for the user. The API server writes the user before the objects. */
const headBytes = 16 * 1024

/**
 * Extracts the requester of a review from the first bytes without parsing. A worker alternates between requesters, so
 * one user's reviews do not delay another's.
 */
function requesterOf(head: Uint8Array, { socket }: Request): QueueRequester {
  const user = /"username":\s*"([^"\\]{1,256})"/.exec(Buffer.from(head).toString('latin1'))?.[1]
  return { address: socket.remoteAddress ?? '', user: user ?? '' }
}

function measure(options: ServerOptions, kind: string, hook: string): (status: number) => void {
  const start = options.seconds()
  return (status) => options.metrics.recordCall(kind, hook, status, options.seconds() - start)
}

/** Returns false when no measurement was started because the request was rejected earlier. */
function finish(response: Response, status: number): boolean {
  const done: unknown = response.locals['measure']
  if (typeof done !== 'function') return false
  done(status)
  return true
}

function authorize({ tokens }: ServerOptions) {
  return function authorize(request: Request, _response: Response, next: NextFunction): void {
    const presented = request.get('authorization') ?? ''
    if (tokens !== undefined && !tokens().some((token) => sameText(presented, `Bearer ${token}`)))
      throw new GatehouseError('UNAUTHENTICATED', { headers: { 'www-authenticate': 'Bearer' } })
    next()
  }
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function respondWithError(
  options: ServerOptions,
  refusals: RejectionLog,
  error: unknown,
  request: Request,
  response: Response,
): void {
  const known = error instanceof GatehouseError ? error : undefined
  if (!known) {
    const name = error instanceof Error ? error.name : 'unknown'
    options.log('error', 'a hook failed', {
      path: request.path.slice(0, 100),
      err: name,
      where: error instanceof WorkerFailure ? error.place : placeOf(error),
    })
  }
  const problem = known ?? new GatehouseError('INTERNAL')
  const called: CalledHook | undefined = response.locals['called']
  if (!finish(response, problem.status) && called)
    options.metrics.recordRejected(called.kind, called.hook, problem.status)
  if (known && called) refusals.logRejected(called, known)
  if (response.headersSent) {
    response.destroy()
    return
  }
  response
    .status(problem.status)
    .set(problem.headers)
    .type('application/problem+json')
    .send(JSON.stringify({ title: problem.code, status: problem.status, detail: problem.message }))
}

function text(response: Response, status: number, body: string): void {
  response.status(status).type('text/plain').send(body)
}
