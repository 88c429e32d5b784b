/**
 * The merged view of several listings: what one kind of client sees, and where each name leads. Pure and immutable.
 * Source: docs/specification/virtual-server.md#aggregation, config.aggregation.
 */
import { hash } from 'node:crypto'
import { type Aggregation, prefixedName } from '../../../schemas/index.ts'
import type { ListKind } from '../backends/connection.ts'
import type { Item, Listing } from './listing.ts'
import { prefixFormat, resolveTools } from './tools.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Composer, Entry, CatalogNotice, ToolEntry } from './types.ts'
import { compileTemplate, type MatchWork, maxMatchWork, type TemplateMatcher } from './uri-template.ts'

export interface TemplateEntry extends Entry {
  readonly matches: TemplateMatcher
}

export class Catalog {
  /** Every tool that can be routed to, by client-facing name; hidden ones too. */
  readonly tools: ReadonlyMap<string, ToolEntry>
  readonly prompts: ReadonlyMap<string, Entry>
  readonly resources: ReadonlyMap<string, Entry>
  readonly templates: ReadonlyMap<string, TemplateEntry>
  /** What is listed, in order. */
  readonly toolList: readonly ToolEntry[]
  readonly promptList: readonly Entry[]
  readonly resourceList: readonly Entry[]
  readonly templateList: readonly TemplateEntry[]
  readonly problems: readonly CatalogNotice[]
  readonly listings: readonly Listing[]
  #digests: Readonly<Record<ListKind, string>> | undefined

  /** `reserved`: names of the tools of the server itself; no tool of a backend is offered under them. */
  constructor(
    listings: readonly Listing[],
    aggregation: Aggregation,
    compose?: Composer,
    reserved: ReadonlySet<string> = new Set(),
  ) {
    const sorted = [...listings].sort((a, b) => compare(a.backend, b.backend))
    const problems: CatalogNotice[] = sorted.flatMap(({ violations }) => violations.problems)
    this.listings = sorted
    this.tools = withOwn(resolveTools(sorted, aggregation, reserved, problems), compose, problems)
    this.prompts = resolvePrompts(sorted, aggregation, problems)
    this.resources = firstWins(sorted, ({ resources }) => resources, 'resource', problems)
    this.templates = withMatchers(
      firstWins(sorted, ({ templates }) => templates, 'resource template', problems),
    )
    this.toolList = sortedByKey([...this.tools.values()].filter(({ advertised }) => advertised))
    this.promptList = sortedByKey([...this.prompts.values()])
    this.resourceList = sortedByKey([...this.resources.values()])
    this.templateList = sortedByKey([...this.templates.values()])
    this.problems = problems
  }

  /** Changes exactly when what clients see of a kind changes. */
  get digests(): Readonly<Record<ListKind, string>> {
    this.#digests ??= {
      tools: digest(this.toolList),
      resources: digest([...this.resourceList, ...this.templateList]),
      prompts: digest(this.promptList),
    }
    return this.#digests
  }

  /** The backend entry behind a URI: the resource itself, else the first template, in order, that it matches. */
  findResource(uri: string): Entry | undefined {
    return this.resources.get(uri) ?? this.#findTemplate(uri)
  }

  /** Each backend has a budget of its own, so that the templates of one do not hide those of another. */
  #findTemplate(uri: string): Entry | undefined {
    const budgets = new Map<string, MatchWork>()
    return this.templateList.find(({ backend, matches }) => {
      const work = budgets.get(backend) ?? { left: maxMatchWork }
      budgets.set(backend, work)
      return matches(uri, work)
    })
  }
}

/** Adds the tools that are made of others. A tool of a backend that is hidden gives its name away, a listed one keeps it. */
function withOwn(
  tools: Map<string, ToolEntry>,
  compose: Composer | undefined,
  problems: CatalogNotice[],
): Map<string, ToolEntry> {
  if (!compose) return tools
  const { entries, problems: found } = compose(tools)
  problems.push(...found)
  const all = new Map(tools)
  for (const entry of entries) {
    const known = all.get(entry.key)
    if (!known?.advertised) all.set(entry.key, entry)
    else {
      problems.push({
        kind: 'collision',
        subject: entry.key,
        message: `tool ${entry.key} is left out: ${known.backend || 'another workflow'} offers a tool of that name`,
      })
    }
  }
  return all
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function sortedByKey<E extends Entry>(entries: E[]): E[] {
  return entries.sort((a, b) => compare(a.key, b.key))
}

function digest(entries: readonly Entry[]): string {
  const parts: Buffer[] = []
  const newline = Buffer.from('\n')
  for (const { json } of entries) parts.push(json, newline)
  return hash('sha256', Buffer.concat(parts), 'base64url')
}

/** The URI is the name, so it cannot be changed: of two backends the first by name keeps it. */
function firstWins(
  listings: readonly Listing[],
  items: (listing: Listing) => readonly Item[],
  what: string,
  problems: CatalogNotice[],
): Map<string, Entry> {
  const entries = new Map<string, Entry>()
  for (const listing of listings) {
    for (const { key, json } of items(listing)) {
      const known = entries.get(key)
      if (!known) entries.set(key, { key, backend: listing.backend, original: key, json })
      else {
        problems.push({
          kind: 'collision',
          subject: key,
          message: `${what} ${key} of ${listing.backend} is left out: ${known.backend} offers it`,
        })
      }
    }
  }
  return entries
}

/**
 * Prompts: with priority, listed backends keep their names and the first wins; everybody else gets the prefix. Two that
 * end up with one name are both left out.
 */
function resolvePrompts(
  listings: readonly Listing[],
  aggregation: Aggregation,
  problems: CatalogNotice[],
): Map<string, Entry> {
  const priority = aggregation.conflictResolution === 'priority'
  const order = priority ? (aggregation.conflictResolutionConfig.priorityOrder ?? []) : []
  const format = priority ? '{workload}_' : prefixFormat(aggregation)
  const ranked = [...listings].sort((a, b) => rank(order, a.backend) - rank(order, b.backend))
  const bare = new Map<string, Entry>()
  const prefixed = new Map<string, Entry[]>()
  for (const { backend, prompts } of ranked) {
    for (const { key, json } of prompts) {
      if (order.includes(backend)) {
        const known = bare.get(key)
        if (!known) bare.set(key, { key, backend, original: key, json })
        else
          problems.push({
            kind: 'shadowed',
            subject: key,
            message: `prompt ${key} of ${backend} is left out: ${known.backend} has priority`,
          })
        continue
      }
      const name = prefixedName(format, backend, key)
      const entry = { key: name, backend, original: key, json: renamed(json, key, name) }
      prefixed.set(name, [...(prefixed.get(name) ?? []), entry])
    }
  }
  const entries = new Map(bare)
  for (const [name, claimants] of prefixed) {
    const [only] = claimants
    if (claimants.length === 1 && only && !bare.has(name)) entries.set(name, only)
    else {
      entries.delete(name)
      const backends = [...claimants, ...(bare.has(name) ? [bare.get(name)] : [])]
        .map((entry) => entry?.backend)
        .join(', ')
      problems.push({
        kind: 'conflict',
        subject: name,
        message: `prompt ${name} is offered by none of ${backends}: the names are equal`,
      })
    }
  }
  return entries
}

function rank(order: readonly string[], backend: string): number {
  const at = order.indexOf(backend)
  return at < 0 ? order.length : at
}

function renamed(json: Buffer, from: string, to: string): Buffer {
  return from === to ? json : new JsonObject(json).with({ name: JSON.stringify(to) })
}

function withMatchers(entries: Map<string, Entry>): Map<string, TemplateEntry> {
  return new Map([...entries].map(([key, entry]) => [key, { ...entry, matches: compileTemplate(key) }]))
}
