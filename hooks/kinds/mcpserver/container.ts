/** The server's own container: its name, which podTemplateSpec refers to, and its port. */
import type { MCPServer } from '../../../schemas/index.ts'

export const serverContainer = 'mcp'

/** Returns the port that the server itself listens on. */
export function serverPort({ spec }: MCPServer): number {
  return spec.mcpPort ?? 8080
}
