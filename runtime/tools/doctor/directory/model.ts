/** Directories in which vendors list MCP servers, and the tools that their reviewers see. */
import type { JsonRecord } from '../../../oauth/index.ts'

export const directoryNames = ['claude', 'openai'] as const
export type DirectoryName = (typeof directoryNames)[number]

export interface ListedTool {
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly annotations: JsonRecord
  readonly inputSchema: JsonRecord
  /** Address of the tool's app page. */
  readonly pageUri: string | undefined
}

export interface ReviewedTools {
  readonly tools: readonly ListedTool[]
  /** Why the list is incomplete. Undefined if it is complete. */
  readonly gap: string | undefined
}
