/**
 * The merged view of several listings: what one kind of client sees, and where each name leads. Pure and immutable.
 * Source: docs/specification/virtual-server.md#aggregation, config.aggregation.
 */
import { hash } from 'node:crypto'
import type { Aggregation } from '../../../schemas/index.ts'
import { visibleText } from '../../observe/index.ts'
import type { ListKind } from '../backends/connection.ts'
import type { Listing } from './listing.ts'
import { resolvePrompts } from './prompts.ts'
import { resolveTools } from './tools.ts'
import type { Composer, CatalogEntry, CatalogNotice, CatalogItem, RefusedEntry, ToolEntry } from './types.ts'
import { compileTemplate, type MatchWork, maxMatchWork, type TemplateMatcher } from './items/uri-template.ts'

export interface TemplateEntry extends CatalogEntry {
  readonly matches: TemplateMatcher
}

export class Catalog {
  /** Every tool that can be routed to, by client-facing name; hidden ones too. */
  readonly tools: ReadonlyMap<string, ToolEntry>
  readonly prompts: ReadonlyMap<string, CatalogEntry>
  readonly resources: ReadonlyMap<string, CatalogEntry>
  readonly templates: ReadonlyMap<string, TemplateEntry>
  /** What pinning keeps from clients, by the names that they know. */
  readonly refusedTools: ReadonlyMap<string, RefusedEntry>
  readonly refusedPrompts: ReadonlyMap<string, RefusedEntry>
  /** What is listed, in order. */
  readonly toolList: readonly ToolEntry[]
  readonly promptList: readonly CatalogEntry[]
  readonly resourceList: readonly CatalogEntry[]
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
    const tools = resolveTools(sorted, aggregation, reserved, problems)
    this.tools = withOwn(tools.entries, compose, problems)
    this.refusedTools = tools.refused
    const prompts = resolvePrompts(sorted, aggregation, problems)
    this.prompts = prompts.entries
    this.refusedPrompts = prompts.refused
    this.resources = firstWins(sorted, ({ resources }) => resources, 'resource', problems)
    this.templates = withMatchers(firstWins(sorted, offeredTemplates, 'resource template', problems))
    this.toolList = sortedByKey([...this.tools.values()].filter(({ advertised }) => advertised))
    this.promptList = sortedByKey([...this.prompts.values()])
    this.resourceList = sortedByKey([...this.resources.values()])
    this.templateList = sortedByKey([...this.templates.values()])
    this.problems = problems.map(shownNotice)
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
  findResource(uri: string): CatalogEntry | undefined {
    return this.resources.get(uri) ?? this.#findTemplate(uri)
  }

  /** Each backend has a budget of its own, so that the templates of one do not hide those of another. */
  #findTemplate(uri: string): CatalogEntry | undefined {
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

/** Names are texts of backends: in logs and in the status every character of them is seen. */
function shownNotice({ kind, subject, message }: CatalogNotice): CatalogNotice {
  return { kind, subject: visibleText(subject), message: visibleText(message) }
}

/** A template that pinning refuses is absent: what it would read is not found. */
function offeredTemplates({ templates }: Listing): readonly CatalogItem[] {
  return templates.some(({ refused }) => refused) ? templates.filter(({ refused }) => !refused) : templates
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function sortedByKey<E extends CatalogEntry>(entries: E[]): E[] {
  return entries.sort((a, b) => compare(a.key, b.key))
}

function digest(entries: readonly CatalogEntry[]): string {
  const parts: Buffer[] = []
  const newline = Buffer.from('\n')
  for (const { json } of entries) parts.push(json, newline)
  return hash('sha256', Buffer.concat(parts), 'base64url')
}

/** The URI is the name, so it cannot be changed: of two backends the first by name keeps it. */
function firstWins(
  listings: readonly Listing[],
  items: (listing: Listing) => readonly CatalogItem[],
  what: string,
  problems: CatalogNotice[],
): Map<string, CatalogEntry> {
  const entries = new Map<string, CatalogEntry>()
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

function withMatchers(entries: Map<string, CatalogEntry>): Map<string, TemplateEntry> {
  return new Map([...entries].map(([key, entry]) => [key, { ...entry, matches: compileTemplate(key) }]))
}
