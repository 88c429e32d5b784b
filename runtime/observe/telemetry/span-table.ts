/**
 * The table of spans that lie inside: what the program does between a client's request and the calls of backends.
 * Server spans are named `<mcp method> <target>`, client spans likewise; see docs/observability.md, which repeats this
 * table and is compared with it by a test.
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
