/**
 * Internal spans, between a client's request and calls to backends. Server spans are named `<mcp method> <target>`,
 * client spans likewise. docs/guides/observability.md repeats this table; a test compares the two.
 */
export const spanTable = {
  'aggregator.AggregateCapabilities': 'what a client sees is put together, because it is not known yet',
  'aggregator.QueryAllCapabilities': 'all backends are asked for their lists, side by side',
  'aggregator.QueryCapabilities': 'one backend is asked for its lists',
  'aggregator.MergeCapabilities': 'the lists are merged, conflicts of names resolved',
  'core.ExecuteWorkflow': 'a workflow runs',
  'optimizer.FindTool': 'tools are searched',
  'optimizer.CallTool': 'a tool is called through call_tool',
} as const satisfies Record<string, string>

export type InternalSpan = keyof typeof spanTable
