/**
 * Tools in the console. The console parses each definition once, in short slices, so a large catalog does not block
 * other work.
 */
import { setImmediate } from 'node:timers/promises'
import { GatehouseError, hiddenInText } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Tool, ToolDetail, ToolList } from '../api.ts'
import type { ShownTool } from '../../observe/index.ts'
import type { ConsoleView } from '../view.ts'
import { pageOf, type ListFacts, given } from './pages.ts'

const unpinned = 'unpinned'
const turnMs = 5
const summaryLength = 200

interface Definition {
  readonly title: string | undefined
  readonly description: string
  readonly inputSchema: string
  readonly outputSchema: string | undefined
  readonly hints: Tool['hints']
  readonly suspicious: boolean
}

/** Parsed definitions of the tools in the catalog. */
const read = new WeakMap<Buffer, Definition>()

export interface ToolFilter {
  readonly text: string | undefined
  readonly backend: string | undefined
  readonly pin: string | undefined
  readonly cursor: string | undefined
  readonly limit: number
}

/** Returns one page of the matching tools. */
export async function toolList(
  all: readonly ShownTool[],
  filter: ToolFilter,
  facts: ListFacts,
): Promise<ToolList> {
  const text = filter.text?.toLowerCase()
  const rows: Tool[] = []
  for await (const one of inTurns(all)) {
    if (filter.backend !== undefined && one.backend !== filter.backend) continue
    if (filter.pin !== undefined && filter.pin !== (one.pin ?? unpinned)) continue
    const row = toolRow(one)
    if (
      text === undefined ||
      `${row.name} ${row.alias ?? ''} ${row.original} ${row.title ?? ''} ${row.summary}`
        .toLowerCase()
        .includes(text)
    )
      rows.push(row)
  }
  return {
    ...pageOf(rows, filter, ({ name }) => name, facts),
    total: rows.length,
    tokens: rows.reduce((sum, { tokens, hidden }) => (hidden === undefined ? sum + tokens : sum), 0),
  }
}

/** Throws NOT_FOUND. */
export function toolDetail(
  all: readonly ShownTool[],
  name: string,
  driftOf: ConsoleView['pinDetail'],
): ToolDetail {
  const facts = all.find((one) => one.name === name)
  if (!facts) throw new GatehouseError('NOT_FOUND', { detail: 'unknown tool' })
  const { description, inputSchema, outputSchema } = definitionOf(facts.json)
  const drift = driftOf(facts.backend, 'tool', facts.original)?.diff ?? []
  return {
    ...toolRow(facts),
    description,
    inputSchema,
    ...given('outputSchema', outputSchema),
    raw: facts.json.toString(),
    page: hasPage(facts.json),
    ...given(
      'drift',
      drift.length > 0 ? drift.map(({ part, lines }) => ({ part, diff: lines.join('\n') })) : undefined,
    ),
  }
}

/** True if a definition names a page. The gateway has removed addresses that are not addresses of pages. */
function hasPage(json: Buffer): boolean {
  const meta = new JsonObject(json).object('_meta')
  const address = meta?.object('ui')?.text('resourceUri') ?? meta?.text('ui/resourceUri')
  return (address ?? meta?.text('openai/outputTemplate')) !== undefined
}

function toolRow({ name, alias, backend, original, json, hidden, pin }: ShownTool): Tool {
  const { title, description, hints, suspicious } = definitionOf(json)
  return {
    name,
    backend,
    original,
    ...given('alias', alias),
    ...given('title', title),
    summary: shortened(description),
    hints,
    tokens: Math.ceil(json.length / 4),
    pin: pin ?? unpinned,
    ...given('hidden', hidden),
    suspicious: suspicious || hasHidden(name),
  }
}

function shortened(text: string): string {
  return text.length > summaryLength ? `${text.slice(0, summaryLength - 1)}…` : text
}

function definitionOf(json: Buffer): Definition {
  const known = read.get(json)
  if (known) return known
  const definition = parse(json)
  read.set(json, definition)
  return definition
}

function parse(json: Buffer): Definition {
  const tool = new JsonObject(json)
  return {
    title: tool.text('title'),
    description: tool.text('description') ?? '',
    inputSchema: tool.raw('inputSchema')?.toString() ?? '{}',
    outputSchema: tool.raw('outputSchema')?.toString(),
    hints: hintsOf(tool.value('annotations')),
    // Serializes the definition again, so the search also finds escaped characters. Escapes replace control characters.
    suspicious: hasHidden(JSON.stringify(JSON.parse(json.toString()))),
  }
}

function hasHidden(text: string): boolean {
  return text.search(hiddenInText) >= 0
}

function hintsOf(annotations: unknown): Tool['hints'] {
  const found = (typeof annotations === 'object' && annotations !== null ? annotations : {}) as Record<
    string,
    unknown
  >
  const hint = (name: string): boolean | undefined => {
    const value = found[`${name}Hint`]
    return typeof value === 'boolean' ? value : undefined
  }
  return {
    ...given('readOnly', hint('readOnly')),
    ...given('destructive', hint('destructive')),
    ...given('idempotent', hint('idempotent')),
    ...given('openWorld', hint('openWorld')),
  }
}

/** Yields to other work every few milliseconds. */
async function* inTurns<T>(all: readonly T[]): AsyncGenerator<T> {
  let since = performance.now()
  for (const one of all) {
    if (performance.now() - since > turnMs) {
      await setImmediate()
      since = performance.now()
    }
    yield one
  }
}
