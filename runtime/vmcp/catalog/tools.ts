/**
 * Determines which tools clients see, and under which names. Applies overrides first, then conflict resolution, then
 * advertising.
 *
 * Backends are processed in the order of their names, so the same listings always yield the same catalog. Tools that
 * cannot be offered unchanged are reported, and are never silently modified.
 * Source: docs/reference/specification/virtual-server.md#aggregation, config.aggregation.
 */
import { JsonObject } from '../../mcp/index.ts'
import type { Listing } from './listing.ts'
import {
  type Aggregation,
  type Fields,
  fieldsOf,
  prefixedName,
  type ToolAnnotations,
  type ToolOverride,
  type WorkloadTools,
} from '../../../schemas/index.ts'
import {
  type CatalogNotice,
  holdsName,
  type Refused,
  type RefusedTool,
  type ToolEntry,
  type ToolItem,
} from '../model/catalog/entries.ts'

/**
 * Some model APIs reject longer names. Without aliases, tools with longer names are still offered, but they are
 * reported.
 */
const longNameLength = 64
const hintNames = ['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

interface Candidate {
  readonly backend: string
  readonly item: ToolItem
  readonly settings: WorkloadTools | undefined
  readonly override: ToolOverride | undefined
  /** The tool's name after an override, before conflict resolution. */
  readonly base: string
  /** True if the backend can run tool calls as tasks of 2025-11-25. */
  readonly hasTasks: boolean
}

/**
 * Resolves the tools of all listings. `listings` must be sorted by backend name. A tool is hidden from clients if its
 * name, whether original or overridden, is reserved. That name then belongs to one of the server's own tools. Workflows
 * can use the tool like any other hidden tool.
 */
export function resolveTools(
  listings: readonly Listing[],
  aggregation: Aggregation,
  reserved: ReadonlySet<string>,
  problems: CatalogNotice[],
): ResolvedTools {
  const all = listings.flatMap((listing) => candidatesOf(listing, aggregation, problems))
  const candidates = all.filter(({ item }) => holdsName(item.refused))
  const entries = new Map<string, ToolEntry>()
  const refused = new Map<string, RefusedTool>()
  for (const [candidate, name] of resolveNames(candidates, aggregation, problems)) {
    const known = entries.get(name) ?? refused.get(name)
    if (known) {
      problems.push({
        kind: 'collision',
        subject: name,
        message: `tool ${name} from ${candidate.backend} is left out: ${known.backend} offers a tool with that name`,
      })
      continue
    }
    if (aggregation.maxToolNameLength === 0 && name.length > longNameLength) {
      problems.push({
        kind: 'long_name',
        subject: name,
        message: `the name of tool ${name} has ${name.length} characters; some clients accept at most ${longNameLength}, and maxToolNameLength is 0`,
      })
    }
    if (candidate.item.refused !== undefined) {
      refused.set(name, refusedEntry(candidate, name, candidate.item.refused))
      continue
    }
    const entry = entryOf(candidate, name, aggregation)
    if (reserved.has(name) && entry.advertised) {
      problems.push(reservedNotice(candidate, name))
      entries.set(name, { ...entry, advertised: false })
    } else entries.set(name, entry)
  }
  for (const candidate of all) {
    const reason = candidate.item.refused
    if (reason === undefined || holdsName(reason) || !isAdvertised(candidate, aggregation)) continue
    for (const [, name] of resolveNames([candidate], aggregation, []))
      if (!entries.has(name) && !refused.has(name)) refused.set(name, refusedEntry(candidate, name, reason))
  }
  return { entries, refused, unnamed: findUnnamed(all, entries, aggregation) }
}

/** Returns the tools that lost their name to another backend. */
function findUnnamed(
  candidates: readonly Candidate[],
  entries: ReadonlyMap<string, ToolEntry>,
  aggregation: Aggregation,
): readonly ToolEntry[] {
  if (candidates.length === entries.size) return []
  const named = new Set([...entries.values()].map(qualifiedName))
  return candidates.flatMap((candidate) => {
    const { backend, item } = candidate
    const name = qualifiedName({ backend, original: item.key })
    if (item.refused !== undefined || named.has(name)) return []
    return [{ ...entryOf(candidate, name, aggregation), advertised: false }]
  })
}

/** Returns `backend.original`, which does not change in a name conflict. */
export function qualifiedName({ backend, original }: Pick<ToolEntry, 'backend' | 'original'>): string {
  return `${backend}.${original}`
}

export interface ResolvedTools {
  readonly entries: Map<string, ToolEntry>
  readonly unnamed: readonly ToolEntry[]
  readonly refused: ReadonlyMap<string, RefusedTool>
}

function refusedEntry({ backend, item }: Candidate, key: string, refused: Refused): RefusedTool {
  return { key, backend, original: item.key, refused, json: item.json }
}

function reservedNotice({ backend, item }: Candidate, name: string): CatalogNotice {
  const tool = item.key === name ? `tool ${name}` : `tool ${item.key}, renamed to ${name},`
  return {
    kind: 'reserved',
    subject: name,
    message: `${tool} from ${backend} is left out: ${name} is reserved for one of the server's own tools`,
  }
}

function workloadTools(aggregation: Aggregation, backend: string): WorkloadTools | undefined {
  return aggregation.tools?.find(({ workload }) => workload === backend)
}

function candidatesOf(listing: Listing, aggregation: Aggregation, problems: CatalogNotice[]): Candidate[] {
  const { backend, tools, server } = listing
  const settings = workloadTools(aggregation, backend)
  const overrides = settings?.overrides ?? {}
  for (const name of Object.keys(overrides)) {
    if (tools.some(({ key }) => key === name)) continue
    problems.push({
      kind: 'unused_override',
      subject: name,
      message: `the override for ${name} does not match any tool from ${backend}`,
    })
  }
  return tools.map((item) => {
    const override = Object.hasOwn(overrides, item.key) ? overrides[item.key] : undefined
    const base = override?.name ?? item.key
    return { backend, item, settings, override, base, hasTasks: server.capabilities.tasks === true }
  })
}

function resolveNames(
  candidates: readonly Candidate[],
  aggregation: Aggregation,
  problems: CatalogNotice[],
): [Candidate, string][] {
  switch (aggregation.conflictResolution) {
    case 'priority':
      return resolveByPriority(candidates, aggregation, problems)
    case 'manual':
      return resolveManually(candidates, problems)
    default: {
      const format = prefixFormat(aggregation)
      return candidates.map((candidate) => [
        candidate,
        prefixedName(format, candidate.backend, candidate.base),
      ])
    }
  }
}

export function prefixFormat(aggregation: Aggregation): string {
  return aggregation.conflictResolutionConfig.prefixFormat
}

function groupByBase(candidates: readonly Candidate[]): Map<string, Candidate[]> {
  return Map.groupBy(candidates, ({ base }) => base)
}

/**
 * Resolves a conflict by priority. Among the backends that share a name, the first in the priority order keeps the
 * name. If the order contains none of these backends, a prefix is added to the name of each backend's item.
 */
function resolveByPriority(
  candidates: readonly Candidate[],
  aggregation: Aggregation,
  problems: CatalogNotice[],
): [Candidate, string][] {
  const order = aggregation.conflictResolutionConfig.priorityOrder ?? []
  const resolved: [Candidate, string][] = []
  for (const [base, claimants] of groupByBase(candidates)) {
    const [only] = claimants
    if (claimants.length === 1 && only) {
      resolved.push([only, base])
      continue
    }
    const winner = order
      .map((name) => claimants.find(({ backend }) => backend === name))
      .find((found) => found !== undefined)
    if (winner) {
      resolved.push([winner, base])
      const losers = claimants.filter((claimant) => claimant !== winner).map(({ backend }) => backend)
      problems.push({
        kind: 'shadowed',
        subject: base,
        message: `tool ${base} from ${losers.join(', ')} is left out: ${winner.backend} has priority`,
      })
    } else {
      for (const claimant of claimants) resolved.push([claimant, `${claimant.backend}_${base}`])
    }
  }
  return resolved
}

/**
 * Uses names exactly as configured by the operator. If two backends still share a name, neither backend's item is
 * offered under this name.
 */
function resolveManually(candidates: readonly Candidate[], problems: CatalogNotice[]): [Candidate, string][] {
  const resolved: [Candidate, string][] = []
  for (const [base, claimants] of groupByBase(candidates)) {
    const [only] = claimants
    if (claimants.length === 1 && only) resolved.push([only, base])
    else {
      const names = claimants.map(({ backend }) => backend).join(', ')
      problems.push({
        kind: 'conflict',
        subject: base,
        message: `tool ${base} is not offered, because several backends use this name (${names}) and no override distinguishes the tools`,
      })
    }
  }
  return resolved
}

function isAdvertised({ settings, base }: Candidate, aggregation: Aggregation): boolean {
  if (aggregation.excludeAllTools) return false
  if (!settings) return aggregation.defaultToolVisibility !== 'deny'
  const { excludeAll, filter } = settings
  return !excludeAll && (filter === undefined || filter.length === 0 || filter.includes(base))
}

function entryOf(candidate: Candidate, name: string, aggregation: Aggregation): ToolEntry {
  const { hasTasks, item, override, backend, base } = candidate
  const { key: original, json, sessionJson, check, mirrored } = item
  const own = annotationsIn(json)
  const annotations = override?.annotations ? mergeAnnotations(own, override.annotations) : own
  const changes: Record<string, string> = {}
  if (override?.description !== undefined) changes['description'] = JSON.stringify(override.description)
  if (override?.annotations) changes['annotations'] = JSON.stringify(annotations)
  const change = (form: Buffer): Buffer => applyChanges(renameTool(form, original, name), changes)
  return {
    key: name,
    backend,
    original,
    base,
    json: change(json),
    advertised: isAdvertised(candidate, aggregation),
    mirrored,
    annotations,
    // Use the backend's own annotations, because an override may only change what clients see.
    repeatable: own['readOnlyHint'] === true || own['idempotentHint'] === true,
    ...(sessionJson && { sessionJson: change(sessionJson) }),
    ...(check && { check }),
    ...(item.ui && { ui: item.ui }),
    ...(hasTasks && taskSupportIn(json)),
  }
}

/** Returns the support for tasks that a session-era backend declares for a tool. */
function taskSupportIn(json: Buffer): Pick<ToolEntry, 'taskSupport'> {
  if (!json.includes('"execution"') && !json.includes('\\u')) return {}
  const support = new JsonObject(json).object('execution')?.text('taskSupport')
  return support === 'required' || support === 'optional' ? { taskSupport: support } : {}
}

function applyChanges(json: Buffer, changes: Readonly<Record<string, string>>): Buffer {
  return Object.keys(changes).length === 0 ? json : new JsonObject(json).with(changes)
}

/** Renames a tool. Most backends write the name first, so the rest of the JSON is not parsed. */
function renameTool(json: Buffer, from: string, to: string): Buffer {
  if (from === to) return json
  const before = `{"name":${JSON.stringify(from)}`
  const { length } = before
  // A name with non-ASCII characters or other escapes differs from the bytes in `before`.
  if (json.toString('latin1', 0, length) !== before)
    return new JsonObject(json).with({ name: JSON.stringify(to) })
  const after = `{"name":${JSON.stringify(to)}`
  const size = Buffer.byteLength(after)
  const made = Buffer.allocUnsafe(size + json.length - length)
  made.write(after)
  json.copy(made, size, length)
  return made
}

const noAnnotations: Fields = {}

/** Returns the annotations of a tool. The tool's JSON has already been checked. */
function annotationsIn(json: Buffer): Fields {
  // An escaped member name contains `\u`.
  if (!json.includes('"annotations"') && !json.includes('\\u')) return noAnnotations
  return fieldsOf(fieldsOf(JSON.parse(json.toString()))['annotations'])
}

/** Merges an override's annotations into the tool's own annotations. */
function mergeAnnotations(own: Fields, override: ToolAnnotations): Fields {
  const set = hintNames.flatMap((hint) =>
    (override[hint] ?? undefined) === undefined ? [] : [[hint, override[hint]] as const],
  )
  return { ...own, ...Object.fromEntries(set) }
}
