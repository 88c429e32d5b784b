/**
 * The capabilities and instructions that the server advertises when a client opens a session or discovers the server.
 *
 * A virtual server advertises every capability, because its backends may change during a session. A proxy serves one
 * target and advertises the target's capabilities.
 * Source: MCP 2025-11-25, lifecycle, "Capability Negotiation"; MCP 2026-07-28, `server/discover`.
 */
import type { ServerInfo } from '../backends/connection.ts'
import type { OperationClient } from '../model/session.ts'

export interface Advertised {
  /** JSON text of the capabilities object. */
  readonly capabilities: string
  readonly instructions: string | undefined
}

/**
 * Returns the capabilities and instructions that the server advertises to a client. This function may query the
 * backends. Rejects with BACKEND_UNAVAILABLE if the backends' capabilities cannot be determined.
 */
export type Advertise = (client: OperationClient) => Advertised | Promise<Advertised>

const announcesChanges = { listChanged: true }

/** Returns every capability, and the capabilities in `more`. */
export function allCapabilities(more: object): Omit<Advertised, 'instructions'> {
  return {
    capabilities: JSON.stringify({
      tools: announcesChanges,
      resources: { subscribe: true, ...announcesChanges },
      prompts: announcesChanges,
      logging: {},
      completions: {},
      ...more,
    }),
  }
}

/**
 * Returns the union of the servers' capabilities, and the capabilities in `more`. The result always includes the list-changed capabilities, even if no
 * server announces changes.
 */
export function combineCapabilities(
  servers: readonly ServerInfo[],
  more: object,
): Omit<Advertised, 'instructions'> {
  const has = (name: 'tools' | 'resources' | 'prompts' | 'logging' | 'completions' | 'subscribe'): boolean =>
    servers.some(({ capabilities }) => capabilities[name])
  return {
    capabilities: JSON.stringify({
      ...(has('tools') && { tools: announcesChanges }),
      ...(has('resources') && {
        resources: { ...(has('subscribe') && { subscribe: true }), ...announcesChanges },
      }),
      ...(has('prompts') && { prompts: announcesChanges }),
      ...(has('logging') && { logging: {} }),
      ...(has('completions') && { completions: {} }),
      ...more,
    }),
  }
}

/** Returns capabilities and instructions as members of a JSON object, without the braces. */
export function advertisedMembers({ capabilities, instructions }: Advertised): string {
  const text = instructions === undefined ? '' : `,"instructions":${JSON.stringify(instructions)}`
  return `"capabilities":${capabilities}${text}`
}
