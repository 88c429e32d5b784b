/**
 * The server's own container: its name, by which podTemplateSpec finds it, and its port.
 */
import type { MCPServer } from '../../../schemas/index.ts'

export const serverContainer = 'mcp'

/** Port on which the server itself listens. */
export function serverPort({ spec }: MCPServer): number {
  return spec.mcpPort ?? 8080
}
