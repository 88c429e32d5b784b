/** A virtual server with tool search, and calls of its two tools. */
import type { Test } from 'tap'
import { stateless, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { type RawBackend, type RawBackendOptions, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

export const tool = (
  name: string,
  description: string,
  properties: Record<string, unknown> = {},
  more = {},
) => JSON.stringify({ name, description, inputSchema: { type: 'object', properties }, ...more })

export const TOOLS = [
  tool('create_issue', 'Opens a new issue in a repository', { repository: { type: 'string' } }),
  tool('list_issues', 'Lists the issues of a repository', { repository: { type: 'string' } }),
  tool('sendEmail', 'Sends a message to somebody', { recipient: { type: 'string' } }),
  tool('weather', 'Forecast for a place', { options: { type: 'object', properties: { postalCode: {} } } }),
  '{"name":"exact","description":"Keeps its bytes","inputSchema":{"type":"object","x":1.50,"big":12345678901234567890}}',
]

export async function start(
  t: Test,
  more: Record<string, unknown> = {},
  backend: RawBackendOptions = {},
): Promise<{ url: string; origin: string; backend: RawBackend }> {
  const raw = await startRawBackend({ tools: () => TOOLS, ...backend })
  const vmcp = await startTestVmcp(
    { raw: raw.url },
    { aggregation: bareNames('raw'), optimizer: {}, ...more },
  )
  t.teardown(() => Promise.all([vmcp.close(), raw.close()]))
  return { url: vmcp.url, origin: vmcp.origin, backend: raw }
}

export interface FindResult {
  readonly tools: { readonly name: string }[]
  readonly token_metrics: { baseline_tokens: number; returned_tokens: number; savings_percent: number }
}

export function foundBy(response: WireAnswer): FindResult {
  return response.response?.result?.['structuredContent'] as FindResult
}

export function listOf(response: WireAnswer): string[] {
  const tools = response.response?.result?.['tools'] as { name: string }[] | undefined
  return tools?.map(({ name }) => name) ?? []
}

export const names = (response: WireAnswer): string[] => foundBy(response).tools.map(({ name }) => name)

export const find = (url: string, tool_description: string, tool_keywords?: unknown) =>
  stateless(url, 'tools/call', { name: 'find_tool', arguments: { tool_description, tool_keywords } })

export const call = (url: string, args: unknown) =>
  stateless(url, 'tools/call', { name: 'call_tool', arguments: args })

/** Text of the first content, with `!` in front of an error. */
export function textOf({ response, text }: WireAnswer): string {
  const { content, isError } = (response?.result ?? {}) as { content?: { text: string }[]; isError?: boolean }
  return content ? `${isError === true ? '!' : ''}${content[0]?.text}` : text
}
