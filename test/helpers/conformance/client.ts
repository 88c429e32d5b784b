/**
 * The command that the official suite's client scenarios start: a virtual server in front of the suite's mock, and a
 * client that uses everything it offers. The suite thus tests the virtual server as a client.
 *
 * Usage: node client.ts URL-OF-THE-MOCK
 */
import { connect } from '../mcp/clients.ts'
import { bareNames, startTestVmcp } from '../vmcp/vmcp.ts'

interface Context {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: Record<string, unknown> }[]
}

const url = process.argv.at(-1) ?? ''
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context
const vmcp = await startTestVmcp({ mock: url }, { aggregation: bareNames('mock') })
const fillsInDefaults = process.env['MCP_CONFORMANCE_SCENARIO'] === 'elicitation-sep1034-client-defaults'
const client = await connect('sdk1', vmcp.url, { fillsInDefaults })
const tools = await client.listTools()
const calls =
  context.toolCalls ?? tools.map((tool) => ({ name: tool.name, arguments: sample(tool['inputSchema']) }))
// An argument named `schema` receives the schema of the first tool, as it arrived here.
for (const { arguments: args } of calls) if ('schema' in args) args['schema'] = tools[0]?.['inputSchema']
for (const call of calls) await client.call(call.name, call.arguments).catch(() => {})
for (const uri of await client.listResources()) await client.readText(uri).catch(() => {})
for (const name of await client.listPrompts()) await client.promptText(name).catch(() => {})
await client.close()
await vmcp.close()

/** Returns a value for each property of a schema. */
function sample(schema: unknown): Record<string, unknown> {
  if (typeof schema !== 'object' || schema === null || !('properties' in schema)) return {}
  const { properties } = schema
  if (typeof properties !== 'object' || properties === null) return {}
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type }]: [string, { type?: string }]) => [
      name,
      type === 'string' ? 'text' : type === 'boolean' ? true : type === 'object' ? {} : 5,
    ]),
  )
}
