/**
 * The capabilities and instructions that the server advertises when a client opens a session or discovers it.
 *
 * A virtual server advertises every capability, because its backends may change during a session. A proxy fronts one
 * server and advertises that server's capabilities.
 * Source: MCP 2025-11-25, lifecycle, "Capability Negotiation"; MCP 2026-07-28, `server/discover`.
 */
import type { ServerInfo } from '../backends/connection.ts'
import type { OperationClient } from '../model/session.ts'

export interface Advertised {
  /** JSON text of the capabilities object. */
  readonly capabilities: string
  readonly instructions: string | undefined
}

/** May ask backends; rejects with BACKEND_UNAVAILABLE when what they have cannot be found out. */
export type Advertise = (client: OperationClient) => Advertised | Promise<Advertised>

const changing = { listChanged: true }

export const everything: Omit<Advertised, 'instructions'> = {
  capabilities: JSON.stringify({
    tools: changing,
    resources: { subscribe: true, ...changing },
    prompts: changing,
    logging: {},
    completions: {},
  }),
}

/** What at least one of the servers has. Changes of lists are announced for all of them, whether they do so or not. */
export function advertisedBy(servers: readonly ServerInfo[]): Omit<Advertised, 'instructions'> {
  const has = (name: 'tools' | 'resources' | 'prompts' | 'logging' | 'completions' | 'subscribe'): boolean =>
    servers.some(({ capabilities }) => capabilities[name])
  return {
    capabilities: JSON.stringify({
      ...(has('tools') && { tools: changing }),
      ...(has('resources') && { resources: { ...(has('subscribe') && { subscribe: true }), ...changing } }),
      ...(has('prompts') && { prompts: changing }),
      ...(has('logging') && { logging: {} }),
      ...(has('completions') && { completions: {} }),
    }),
  }
}

/** The two as members of a result, in JSON text without braces. */
export function advertisedMembers({ capabilities, instructions }: Advertised): string {
  const text = instructions === undefined ? '' : `,"instructions":${JSON.stringify(instructions)}`
  return `"capabilities":${capabilities}${text}`
}
