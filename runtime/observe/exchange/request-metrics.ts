/** Counts client requests. Labels contain only known names, so a client cannot create series. */
import type { Metrics } from '../telemetry/metrics.ts'
import { knownMethod } from './rpc.ts'
import type { RpcResponse } from './rpc-answer.ts'
import type { RequestScope } from './scope.ts'

/** Names of tools and prompts that were called successfully, up to a limit; all others become `other`. */
export interface KnownNames {
  label(name: string, exists: boolean): string
}

const maxNames = 500
const otherMethod = 'other'

export function makeKnownNames(max = maxNames): KnownNames {
  const names = new Set<string>()
  return {
    label(name, exists) {
      if (names.has(name)) return name
      if (!exists || names.size >= max) return otherMethod
      names.add(name)
      return name
    },
  }
}

export interface RequestCount {
  readonly scope: RequestScope
  readonly server: string
  readonly transport: string
  readonly method: string
  readonly httpVersion: string
  readonly status: number
  readonly seconds: number
  readonly failure: string | undefined
  readonly response: RpcResponse | undefined
}

export function countRequest(metrics: Metrics, names: KnownNames, count: RequestCount): void {
  const { scope, server, transport, method, status, seconds, failure, response } = count
  const { rpc } = scope
  const result = status >= 400 || failure !== undefined ? 'error' : 'success'
  const labels = {
    method,
    status_code: status,
    status: result,
    mcp_method: rpc && rpc.method !== '' ? knownMethod(rpc.method) : undefined,
    server,
    transport,
  }
  metrics.mcpRequests(1, labels)
  metrics.mcpRequestDuration(seconds, labels)
  if (!rpc || rpc.method === '') return
  // A name gets its own metric series only when a backend offers it, or when the response proves that the name exists.
  const good = status < 400 && response?.kind === 'result' && response.toolError !== true
  const exists = scope.backend !== undefined || good
  const name = rpc.target === undefined ? otherMethod : names.label(rpc.target, exists)
  if (rpc.targetType === 'tool') metrics.mcpToolCalls(1, { server, tool: name, status: result })
  metrics.serverOperationDuration(seconds, {
    'mcp.method.name': knownMethod(rpc.method),
    'jsonrpc.protocol.version': '2.0',
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'network.protocol.version': count.httpVersion,
    'error.type': failure,
    'gen_ai.operation.name': rpc.targetType === 'tool' ? 'execute_tool' : undefined,
    'gen_ai.tool.name': rpc.targetType === 'tool' ? name : undefined,
    'gen_ai.prompt.name': rpc.targetType === 'prompt' ? name : undefined,
  })
}
