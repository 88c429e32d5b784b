/**
 * Internal spans, between a client's request and calls to backends. Server spans are named `<mcp method> <target>`,
 * client spans likewise. docs/guides/observability.md repeats this table; a test compares the two.
 */
export const spanTable = {
  'aggregator.AggregateCapabilities': 'the catalog of a client is assembled, because it is not cached',
  'aggregator.QueryAllCapabilities': 'the lists of all backends are requested concurrently',
  'aggregator.QueryCapabilities': 'the lists of one backend are requested',
  'aggregator.MergeCapabilities': 'the lists are merged, and name conflicts are resolved',
  'core.ExecuteWorkflow': 'a workflow runs',
  'optimizer.FindTool': 'tools are searched',
  'optimizer.CallTool': 'a tool is called through call_tool',
} as const satisfies Record<string, string>

export type InternalSpan = keyof typeof spanTable
