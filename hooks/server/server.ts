/**
 * The edge of the hooks half: HTTP routes in front of the registry and of admission. The only file that knows Express.
 *
 *   POST /hooks/<plural>/sync, /hooks/<plural>/customize   Metacontroller (hooks v2)
 *   POST /validate                                         AdmissionReview v1, all kinds
 *   GET  /healthz, /readyz, /metrics
 *
 * Bodies carry Secrets, so none is ever logged, and no error repeats a part of one. Authentication of the caller is TLS
 * and, when a token is set, a bearer token on /hooks; the API server sends no credentials to /validate.
 * Source: Metacontroller hook HTTP contract; Kubernetes admission.k8s.io/v1; RFC 9457 for errors.
 */
import { timingSafeEqual } from 'node:crypto'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import { GatehouseError } from '../../schemas/index.ts'
import { reviewAdmission } from '../admission/index.ts'
import type { EventSink } from './events.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { HookEntry, HookRegistry } from '../bound-hooks.ts'
import { type BodyLimits, jsonBody } from './request-body.ts'

export interface ServerOptions {
  readonly registry: HookRegistry
  readonly metrics: Metrics
  readonly log: Log
  /** Seconds, monotonic. */
  readonly seconds: () => number
  /** Why no requests should come here now; undefined when they should. */
  readonly notReady: () => string | undefined
  /** Demanded as bearer token on /hooks when set. */
  readonly token?: () => string | undefined
  /** Takes the events that a sync calls for; never awaited. */
  readonly events?: EventSink
}

const mebibyte = 1024 * 1024

/**
 * A request of Metacontroller holds every related object of a namespace; a review holds an object before and after, of
 * which the API server takes at most 3 MiB. Two budgets, so that untrusted clients, who can only review, do not keep
 * Metacontroller out. Measured: all of it at once stays below 512 MiB (test/security/hooks-memory.test.ts).
 */
const hookLimits: BodyLimits = {
  bytes: 24 * mebibyte,
  values: 1_000_000,
  depth: 200,
  requests: 64,
  bytesInFlight: 24 * mebibyte,
}
const reviewLimits: BodyLimits = {
  bytes: 8 * mebibyte,
  values: 100_000,
  depth: 200,
  requests: 64,
  bytesInFlight: 12 * mebibyte,
}

/** Builds the Express application. */
export function hooksApp(options: ServerOptions): Express {
  const app = express()
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
  // Any content type: whatever Metacontroller calls it, the body is JSON.
  app.post(
    '/hooks/:plural/:hook',
    authorize(options),
    jsonBody(hookLimits),
    (request: Request, response: Response) => hookResponse(options, request, response),
  )
  app.post('/validate', jsonBody(reviewLimits), (request: Request, response: Response) =>
    reviewResponse(options, request, response),
  )
  app.all(['/hooks/:plural/:hook', '/validate'], (_request, response) => {
    response.set('allow', 'POST')
    throw new GatehouseError('METHOD_NOT_ALLOWED')
  })
  app.use(() => {
    throw new GatehouseError('NOT_FOUND')
  })
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    respondWithError(options, error, request, response),
  )
  return app
}

function hookResponse(options: ServerOptions, request: Request, response: Response): void {
  const { plural, hook } = request.params
  const entry = options.registry.byPlural(String(plural))
  if (!entry || (hook !== 'sync' && hook !== 'customize')) throw new GatehouseError('NOT_FOUND')
  response.locals['measure'] = measure(options, entry.kind, hook)
  const body: unknown = request.body
  response.json(hook === 'sync' ? entry.sync(body) : entry.customize(body))
  finish(response, 200)
  if (hook === 'sync') report(options, entry, body)
}

/** Hands over the events of a sync after the response is on its way. An error here concerns nobody but the log. */
function report(options: ServerOptions, entry: HookEntry, body: unknown): void {
  if (!options.events || !entry.events) return
  try {
    for (const event of entry.events(body)) options.events.emit(event)
  } catch {
    options.log('warn', 'an event could not be composed', { kind: entry.kind })
  }
}

function reviewResponse(options: ServerOptions, request: Request, response: Response): void {
  const done = measure(options, 'AdmissionReview', 'validate')
  response.locals['measure'] = done
  const { review, kind } = reviewAdmission(options.registry, request.body)
  if (!review.response.allowed) options.metrics.denied(kind)
  response.json(review)
  finish(response, 200)
}

function measure(options: ServerOptions, kind: string, hook: string): (status: number) => void {
  const start = options.seconds()
  return (status) => options.metrics.record(kind, hook, status, options.seconds() - start)
}

function finish(response: Response, status: number): void {
  const done: unknown = response.locals['measure']
  if (typeof done === 'function') done(status)
}

function authorize(options: ServerOptions) {
  return function authorize(request: Request, _response: Response, next: NextFunction): void {
    const token = options.token?.()
    if (token !== undefined && !sameText(request.get('authorization') ?? '', `Bearer ${token}`)) {
      throw new GatehouseError('UNAUTHENTICATED', { headers: { 'www-authenticate': 'Bearer' } })
    }
    next()
  }
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function respondWithError(
  options: ServerOptions,
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
      where: whereOf(error),
    })
  }
  const problem = known ?? new GatehouseError('INTERNAL')
  finish(response, problem.status)
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

/** The place in our code where an unexpected error arose; its message could repeat request data and is left out. */
function whereOf(error: unknown): string {
  const line =
    error instanceof Error ? error.stack?.split('\n').find((text) => /^\s+at /.test(text)) : undefined
  return line?.trim().slice(0, 200) ?? ''
}

function text(response: Response, status: number, body: string): void {
  response.status(status).type('text/plain').send(body)
}
