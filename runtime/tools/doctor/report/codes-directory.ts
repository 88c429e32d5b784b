/** Codes for the requirements of vendors' directories. */
export const directoryCodes = {
  'directory.list': {
    expected: 'all pages of tools/list, with at least one tool',
    fix: 'Check the MCP server’s log for this request. If the tools depend on the caller, use a token whose caller can list them. The findings below cover only the tools that were read.',
  },
  'directory.title': {
    expected: 'every tool has a title',
    fix: 'Set title, or annotations.title, on these tools; for tools of a backend, use overrides in the virtual server.',
  },
  'directory.claude-hints': {
    expected: 'every tool sets readOnlyHint or destructiveHint',
    fix: 'Set readOnlyHint to true on tools that only read, and destructiveHint on the other tools.',
  },
  'directory.openai-hints': {
    expected: 'every tool sets destructiveHint and openWorldHint',
    fix: 'Set both hints to true or false on each tool. The defaults of the MCP specification do not count.',
  },
  'directory.name': {
    expected: 'tool names of at most 64 characters',
    fix: 'Shorten the names, or set maxToolNameLength to 64 in the virtual server.',
  },
  'directory.methods': {
    expected: 'separate tools for reading and for writing',
    fix: 'Split each tool that has a parameter for reading or writing, so that every tool has accurate hints.',
  },
  'directory.instructions': {
    expected: 'descriptions that do not instruct the model',
    fix: 'Remove hidden characters, and sentences that instruct the model.',
  },
  'directory.app': {
    expected: 'every app page declares _meta.ui.csp',
    fix: 'Declare the origins that the page needs in _meta.ui.csp; an empty object allows none.',
  },
  'directory.login': {
    expected: 'no login, or OAuth in which clients register themselves',
    fix: 'Directories accept neither static tokens nor client credentials. Put an authorization server with dynamic client registration or client id metadata documents in front, such as the embedded one.',
  },
  'directory.domain': {
    expected: 'a file at /.well-known/openai-apps-challenge',
    fix: 'Publish the token that OpenAI shows during the submission at this path.',
  },
} as const
