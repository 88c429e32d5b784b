/**
 * Requests to a backend under observation: a span and the backend's counters around each, trace context on the way.
 */
import { type BackendCalls, isToolError, readError } from '../../../observe/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { BackendSettings } from '../settings.ts'
import type { Request } from '../connection.ts'

export interface BackendObservation {
  readonly calls: BackendCalls
  /** Told which backend the request of a client is taken to. */
  named(backend: string): void
}

interface Observed {
  readonly settings: BackendSettings
  readonly revision: string | undefined
}

/** Runs a request; `work` gets it with the trace context that the backend is to see. */
export function measured(
  { calls }: BackendObservation,
  { settings, revision }: Observed,
  request: Request,
  work: (request: Request) => Promise<Outcome>,
): Promise<Outcome> {
  const { method } = request
  const call = {
    backend: settings.name,
    url: settings.target.url.href,
    transport: settings.transport,
    method,
    revision,
    authenticated: settings.authType !== 'unauthenticated',
    target: targetOf(request),
  }
  return calls.observe(
    call,
    () => work(traced(request, calls.carrier())),
    (outcome) => errorOf(method, outcome),
  )
}

function traced(request: Request, trace: Readonly<Record<string, string>>): Request {
  return trace['traceparent'] === undefined ? request : { ...request, trace }
}

/** The backend's own name of what is asked for. */
function targetOf({ method, params, changes }: Request): string | undefined {
  if (method.startsWith('resources/')) return params.text('uri')
  if (method !== 'tools/call' && method !== 'prompts/get') return undefined
  const changed = changes?.['name']
  const name: unknown = changed === undefined ? params.text('name') : JSON.parse(changed.toString())
  return typeof name === 'string' ? name : undefined
}

function errorOf(method: string, outcome: Outcome): string | undefined {
  if (outcome.kind === 'error') return String(readError(outcome.error.toString()).code ?? 'error')
  return method === 'tools/call' && isToolError(outcome.result) ? 'tool_error' : undefined
}
