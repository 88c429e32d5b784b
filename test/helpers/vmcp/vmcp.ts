/** Starts a virtual server in process, in front of given backends, for tests. */
import { parseVmcpConfig, type VmcpConfig } from '../../../runtime/config/index.ts'
import { type StartOptions, startVmcp, type VmcpServer } from '../../../runtime/vmcp/index.ts'

export interface BackendInput {
  readonly url: string
  readonly transport?: 'streamable-http' | 'sse' | 'openapi'
}

/** Returns a configuration as in a file; `more` replaces whole top-level fields. */
export function vmcpConfig(
  backends: Readonly<Record<string, string | BackendInput>>,
  more: Readonly<Record<string, unknown>> = {},
): VmcpConfig {
  return parseVmcpConfig(
    JSON.stringify({
      name: 'test-vmcp',
      groupRef: 'test-group',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
      },
      backends: Object.entries(backends).map(([name, backend]) => ({
        name,
        transport: 'streamable-http',
        ...(typeof backend === 'string' ? { url: backend } : backend),
      })),
      ...more,
    }),
  )
}

/** Names stay as they are at the backends. */
export function bareNames(...order: string[]): unknown {
  return { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: order } }
}

export async function startTestVmcp(
  backends: Readonly<Record<string, string | BackendInput>>,
  more: Readonly<Record<string, unknown>> = {},
  options: StartOptions = {},
): Promise<VmcpServer> {
  return startVmcp(vmcpConfig(backends, more), { port: 0, graceMs: 200, ...options })
}
