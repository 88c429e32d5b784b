/** Directories in which vendors list MCP servers. */
export const directoryNames = ['claude', 'openai'] as const
export type DirectoryName = (typeof directoryNames)[number]
