/**
 * The operations that `tools`, `resources` and `prompts` run over an open conversation. Each operation prints its
 * result. JSON is printed as the server sent it, with control and hidden characters escaped.
 */
import { GatehouseError, isFields, invalidConfig, nearest, visibleJson } from '../../../schemas/index.ts'
import { JsonObject, rpcCode, scanElements } from '../../mcp/index.ts'
import { exitCode, painter, print, printError } from '../../toolkit/terminal/output.ts'
import { type ArgumentFlags, argumentsFrom } from './arguments.ts'
import { type McpClient, ServerError } from './client.ts'
import { forTerminal, oneLine, quantity } from '../../toolkit/terminal/plain-text.ts'
import {
  blobText,
  promptRow,
  promptText,
  resourceContents,
  resourceRow,
  type TextRow,
  toolResultText,
  toolRow,
} from './text.ts'

export type OutputFormat = 'text' | 'json'

/** Maximum number of pages per list. */
const maxPages = 1000
const none = new JsonObject(Buffer.from('{}'))

interface Listing {
  readonly method: string
  readonly member: string
  readonly row: (item: Readonly<Record<string, unknown>>) => TextRow
}

const listings = {
  tools: [{ method: 'tools/list', member: 'tools', row: toolRow }],
  prompts: [{ method: 'prompts/list', member: 'prompts', row: promptRow }],
  resources: [
    { method: 'resources/list', member: 'resources', row: resourceRow },
    { method: 'resources/templates/list', member: 'resourceTemplates', row: resourceRow },
  ],
} as const satisfies Readonly<Record<string, readonly Listing[]>>

export async function printList(
  client: McpClient,
  what: keyof typeof listings,
  output: OutputFormat,
): Promise<number> {
  const parts: string[] = []
  const rows: TextRow[] = []
  for (const { method, member, row } of listings[what]) {
    const items = await readList(client, method, member)
    parts.push(`${JSON.stringify(member)}:[${items.map(String).join(',')}]`)
    rows.push(...items.map((item) => row(fieldsOf(item))))
  }
  if (output === 'json') print(visibleJson(`{${parts.join(',')}}`))
  else printRows(rows, what)
  return exitCode.ok
}

/** Returns all pages. An optional method that the server does not implement is treated as an empty list. */
async function readList(client: McpClient, method: string, member: string): Promise<readonly Buffer[]> {
  const items: Buffer[] = []
  const seen = new Set<string>()
  let params = none
  for (let page = 0; page < maxPages; page++) {
    const result = new JsonObject(await listPage(client, method, params))
    const raw = result.raw(member)
    if (raw) items.push(...scanElements(raw))
    const cursor = result.text('nextCursor')
    if (cursor === undefined) return items
    if (seen.has(cursor)) break
    seen.add(cursor)
    params = new JsonObject(none.with({ cursor: JSON.stringify(cursor) }))
  }
  printError(`Warning: the list seems endless; stopped reading after ${items.length} entries.`)
  return items
}

async function listPage(client: McpClient, method: string, params: JsonObject): Promise<Buffer> {
  try {
    return await client.request(method, params)
  } catch (error) {
    const isAbsent = error instanceof ServerError && error.code === rpcCode.methodNotFound
    if (isAbsent) return none.bytes
    throw error
  }
}

function printRows(rows: readonly TextRow[], what: string): void {
  const paint = painter({ colour: process.stdout.isTTY && process.stdout.hasColors() })
  if (rows.length === 0) printError(`The server has no ${what}.`)
  for (const { head, details } of rows) {
    print(paint('bold', oneLine(head)))
    for (const line of details) if (line !== '') print(`    ${paint('dim', oneLine(line))}`)
  }
}

export async function callTool(
  client: McpClient,
  name: string,
  pairs: readonly string[],
  flags: ArgumentFlags & { readonly output: OutputFormat },
): Promise<number> {
  const callArguments = await argumentsFrom(pairs, flags, () => schemaOf(client, name))
  const result = await client
    .request('tools/call', withArguments(name, callArguments))
    .catch(async (error: unknown) => {
      if (error instanceof ServerError) await refuseUnknown(client, name)
      throw error
    })
  const fields = fieldsOf(result)
  const failed = fields['isError'] === true
  // Some servers report an unknown tool as a tool error.
  if (failed && toolResultText(fields).includes(name)) await refuseUnknown(client, name)
  if (flags.output === 'json') printRaw(result)
  else if (failed)
    printError(`Error: ${forTerminal(toolResultText(fields)) || 'the tool returned no error message'}`)
  else printText(toolResultText(fields))
  return failed ? exitCode.failed : exitCode.ok
}

/** Throws INVALID_CONFIG with the most similar name if the server has no such tool. Ignores an unreadable list. */
async function refuseUnknown(client: McpClient, name: string): Promise<void> {
  await schemaOf(client, name).catch((error: unknown) => {
    if (error instanceof GatehouseError) throw error
  })
}

async function schemaOf(client: McpClient, name: string): Promise<unknown> {
  const tools = (await readList(client, 'tools/list', 'tools')).map(fieldsOf)
  const tool = tools.find((candidate) => candidate['name'] === name)
  if (tool) return tool['inputSchema']
  const names = tools.map((candidate) => oneLine(String(candidate['name']), 80))
  const close = nearest(name, names) ?? names.find((known) => known.endsWith(`_${name}`))
  const hint =
    close === undefined
      ? `it has ${quantity(names.length, 'tool')}; list them with gatehouse tools list`
      : `did you mean ${close}?`
  throw invalidConfig(`the server has no tool "${oneLine(name, 80)}"; ${hint}`)
}

export async function getPrompt(
  client: McpClient,
  name: string,
  pairs: readonly string[],
  flags: ArgumentFlags & { readonly output: OutputFormat },
): Promise<number> {
  // Prompt arguments are always strings.
  const callArguments = await argumentsFrom(pairs, flags, async () => undefined)
  const result = await client.request('prompts/get', withArguments(name, callArguments))
  if (flags.output === 'json') printRaw(result)
  else printText(promptText(fieldsOf(result)))
  return exitCode.ok
}

/**
 * Writes binary content unchanged to a file or pipe. On a terminal, prints a line that describes the content instead.
 */
export async function readResource(client: McpClient, uri: string, output: OutputFormat): Promise<number> {
  const result = await client.request(
    'resources/read',
    new JsonObject(none.with({ uri: JSON.stringify(uri) })),
  )
  if (output === 'json') {
    printRaw(result)
    return exitCode.ok
  }
  for (const content of resourceContents(fieldsOf(result))) {
    if (content.text !== undefined) printText(content.text)
    else if (process.stdout.isTTY) print(oneLine(blobText(content)))
    else process.stdout.write(content.bytes ?? '')
  }
  return exitCode.ok
}

function withArguments(name: string, callArguments: JsonObject): JsonObject {
  return new JsonObject(none.with({ name: JSON.stringify(name), arguments: callArguments.bytes }))
}

function printRaw(result: Buffer): void {
  print(visibleJson(result.toString()))
}

function printText(text: string): void {
  print(process.stdout.isTTY ? forTerminal(text) : text)
}

function fieldsOf(raw: Buffer): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(raw.toString())
  return isFields(value) ? value : {}
}
