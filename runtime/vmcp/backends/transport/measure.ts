/** Observes requests to a backend. Records a span and the backend's metrics, and propagates the trace context. */
import { type BackendCalls, isToolError, readError } from '../../../observe/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { BackendSettings } from '../settings.ts'
import type { Request } from '../connection.ts'

export interface BackendObservation {
  readonly calls: BackendCalls
  /** Called with the name of the backend to which a client request is sent. */
  onBackendSelected(backend: string): void
}

interface ObservedBackend {
  readonly settings: BackendSettings
  readonly revision: string | undefined
}

/** Runs and observes a request. `work` receives the request with the trace context for the backend. */
export function observeRequest(
  { calls }: BackendObservation,
  { settings, revision }: ObservedBackend,
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
    () => work(withTrace(request, calls.carrier())),
    (outcome) => errorOf(method, outcome),
  )
}

function withTrace(request: Request, trace: Readonly<Record<string, string>>): Request {
  return trace['traceparent'] === undefined ? request : { ...request, trace }
}

/** Returns the original name of the requested item. */
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
