/**
 * Measures calls to backends: client spans, backend counters, durations.
 *
 * Addresses and resource URIs are recorded only on the span; labels contain only names.
 * Source: OpenTelemetry semantic conventions for MCP, client.
 */
import { own } from '../../../schemas/index.ts'
import { LRUCache } from 'lru-cache'
import type { Metrics } from './metrics.ts'
import { errorType, noSpan, type SpanHandle, type Tracer } from './tracer.ts'

export interface BackendCall {
  readonly backend: string
  /** Address of the backend; recorded on the span without userinfo and query. */
  readonly url: string
  readonly transport: 'streamable-http' | 'sse' | 'openapi'
  readonly method: string
  /** MCP revision of the backend, once known. */
  readonly revision?: string | undefined
  /** True when the request contains a credential. */
  readonly authenticated: boolean
  /** Original name of the tool or prompt, or URI of the resource. */
  readonly target?: string | undefined
}

export interface BackendCalls {
  /**
   * Runs a call. `errorOf` returns the error kind of an error response. A rejection is counted by its code. While the
   * call runs, it adds further details to the span handle.
   */
  observe<T>(
    call: BackendCall,
    work: (span: SpanHandle) => Promise<T>,
    errorOf?: (result: T) => string | undefined,
  ): Promise<T>
  /** Returns the trace context for outgoing requests; empty when tracing is off. */
  readonly carrier: () => Readonly<Record<string, string>>
}

const actions: Readonly<Record<string, string>> = {
  'tools/call': 'call_tool',
  'resources/read': 'read_resource',
  'prompts/get': 'get_prompt',
  'completion/complete': 'complete',
  'tools/list': 'list_capabilities',
  'resources/list': 'list_capabilities',
  'resources/templates/list': 'list_capabilities',
  'prompts/list': 'list_capabilities',
}

export function makeBackendCalls(
  metrics: Metrics,
  tracer: Tracer,
  { enabled }: { readonly enabled: boolean },
): BackendCalls {
  const carrier = tracer.carrier.bind(tracer)
  if (!enabled) return { observe: (_call, work) => work(noSpan), carrier }
  return {
    carrier,
    observe(call, work, errorOf) {
      const name = call.target === undefined || isRead(call) ? call.method : `${call.method} ${call.target}`
      return tracer.client(name, async (span) => {
        const startedAt = performance.now()
        if (span.recording) span.set(attributesOf(call))
        let failure: string | undefined
        try {
          const result = await work(span)
          failure = errorOf?.(result)
          if (failure !== undefined) span.fail(failure)
          return result
        } catch (error) {
          failure = errorType(error)
          throw error
        } finally {
          count(metrics, call, (performance.now() - startedAt) / 1000, failure)
        }
      })
    },
  }
}

function isRead({ method }: BackendCall): boolean {
  return method.startsWith('resources/')
}

function attributesOf(call: BackendCall) {
  const { method, target } = call
  return {
    'mcp.method.name': method,
    'mcp.protocol.version': call.revision,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'target.workload_name': call.backend,
    'target.base_url': call.url,
    'target.transport_type': call.transport,
    'auth.authenticated': call.authenticated,
    'gen_ai.operation.name': method === 'tools/call' ? 'execute_tool' : undefined,
    'gen_ai.tool.name': method === 'tools/call' ? target : undefined,
    'gen_ai.prompt.name': method === 'prompts/get' ? target : undefined,
    'mcp.resource.uri': isRead(call) ? target : undefined,
  }
}

function count(metrics: Metrics, call: BackendCall, seconds: number, failure: string | undefined): void {
  const { method, target } = call
  const tool = method === 'tools/call' ? target : undefined
  const prompt = method === 'prompts/get' ? target : undefined
  const labels = {
    'target.workload_id': call.backend,
    'target.workload_name': call.backend,
    'target.transport_type': call.transport,
    action: own(actions, method) ?? 'other',
    'mcp.method.name': method,
    'mcp.protocol.revision': call.revision,
    tool_name: tool,
    'gen_ai.tool.name': tool,
    prompt_name: prompt,
    'gen_ai.prompt.name': prompt,
    'auth.authenticated': call.authenticated,
  }
  metrics.backendRequests(1, labels)
  if (failure !== undefined) metrics.backendErrors(1, labels)
  metrics.backendRequestsDuration(seconds, labels)
  metrics.clientOperationDuration(seconds, {
    'mcp.method.name': method,
    'mcp.protocol.version': call.revision,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    ...serverOf(call.url),
    'error.type': failure,
    'gen_ai.tool.name': tool,
    'gen_ai.operation.name': tool === undefined ? undefined : 'execute_tool',
    'gen_ai.prompt.name': prompt,
  })
}

interface ServerLabels {
  readonly 'server.address': string
  readonly 'server.port': number
}

/** Cached labels of backends. The limit is sufficient for current and previous backends. */
const servers = new LRUCache<string, ServerLabels>({ max: 1_000 })

function serverOf(url: string): ServerLabels {
  let labels = servers.get(url)
  if (!labels) {
    const { hostname, port, protocol } = new URL(url)
    labels = {
      'server.address': hostname,
      'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    }
    servers.set(url, labels)
  }
  return labels
}
