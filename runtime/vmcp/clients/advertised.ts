/**
 * The capabilities and instructions that the server advertises when a client opens a session or discovers the server.
 *
 * A virtual server advertises every capability, because its backends may change during a session. A proxy serves one
 * target and advertises the target's capabilities.
 * Source: MCP 2025-11-25, lifecycle, "Capability Negotiation"; MCP 2026-07-28, `server/discover`.
 */
import type { Fields } from '../../../schemas/index.ts'
import type { Era } from '../../mcp/index.ts'
import type { ServerInfo } from '../backends/connection.ts'
import type { TaskCapabilities } from '../features/tasks/index.ts'
import type { ExtensionSet } from '../model/extensions.ts'
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

/** Returns every capability of Gatehouse, and the enabled extensions and tasks. */
export function allCapabilities(
  era: Era,
  extensions: ExtensionSet,
  tasks: TaskCapabilities,
): Omit<Advertised, 'instructions'> {
  return {
    capabilities: JSON.stringify({
      tools: announcesChanges,
      resources: { subscribe: true, ...announcesChanges },
      prompts: announcesChanges,
      logging: {},
      completions: {},
      ...tasks.capabilities,
      ...extensionsMember({ ...extensions.advertised(era), ...tasks.extensions }),
    }),
  }
}

function extensionsMember(advertised: Fields): Fields {
  return Object.keys(advertised).length > 0 ? { extensions: advertised } : {}
}

/**
 * Returns the union of the servers' capabilities, and the enabled extensions that a server declares. The result always
 * includes tasks if they are enabled, and the list-changed capabilities, even if no server announces changes.
 */
export function combineCapabilities(
  servers: readonly ServerInfo[],
  era: Era,
  extensions: ExtensionSet,
  tasks: TaskCapabilities,
): Omit<Advertised, 'instructions'> {
  const offered = new Set(servers.flatMap((server) => [...server.extensions.keys()]))
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
      ...tasks.capabilities,
      ...extensionsMember({ ...extensions.advertised(era, offered), ...tasks.extensions }),
    }),
  }
}

/** Returns capabilities and instructions as members of a JSON object, without the braces. */
export function advertisedMembers({ capabilities, instructions }: Advertised): string {
  const text = instructions === undefined ? '' : `,"instructions":${JSON.stringify(instructions)}`
  return `"capabilities":${capabilities}${text}`
}
