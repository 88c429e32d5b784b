/**
 * The merged view of several listings. Contains the items that clients of one kind see, and the target to which each
 * name refers. A catalog is immutable.
 * Source: docs/reference/specification/virtual-server.md#aggregation, config.aggregation.
 */
import { hash } from 'node:crypto'
import type { Aggregation } from '../../../schemas/index.ts'
import { visibleText } from '../../observe/index.ts'
import type { ListKind } from '../backends/connection.ts'
import type { Listing } from './listing.ts'
import { type Aliases, aliasesOf } from './names/aliases.ts'
import { AppIndex } from './names/app-index.ts'
import { isSkillAddress } from './names/skill-addresses.ts'
import { isUiAddress, unlistedUri } from './names/ui-addresses.ts'
import { joinedItems } from './pages.ts'
import { resolvePrompts } from './prompts.ts'
import { resolveTools } from './tools.ts'
import {
  type Composer,
  type CatalogNotice,
  type CatalogItem,
  holdsName,
  type ItemKind,
  type Refused,
  type RefusedEntry,
  type RefusedTool,
  type ToolEntry,
  type UnlistedTools,
} from '../model/catalog/entries.ts'
import type { CatalogEntry } from '../model/catalog/entry.ts'
import { compileTemplate, type MatchWork, maxMatchWork, type TemplateMatcher } from './items/uri-template.ts'

export interface TemplateEntry extends CatalogEntry {
  readonly matches: TemplateMatcher
}

/** A template that is withheld from clients. Requests for URIs that match the template are refused. */
interface RefusedTemplate extends RefusedEntry {
  readonly matches: TemplateMatcher
}

export class Catalog {
  /** Every routable tool, including hidden tools, keyed by client-facing name. */
  readonly tools: ReadonlyMap<string, ToolEntry>
  readonly prompts: ReadonlyMap<string, CatalogEntry>
  readonly resources: ReadonlyMap<string, CatalogEntry>
  readonly templates: ReadonlyMap<string, TemplateEntry>
  /** Items that pinning or guardrails withhold, keyed by client-facing name. */
  readonly refusedTools: ReadonlyMap<string, RefusedTool>
  readonly refusedPrompts: ReadonlyMap<string, RefusedEntry>
  readonly refusedResources: ReadonlyMap<string, RefusedEntry>
  readonly refusedTemplates: ReadonlyMap<string, RefusedTemplate>
  /** Templates in lookup order. Allowed and changed items come first, then items that were never approved. */
  readonly #templateOrder: readonly (TemplateEntry | RefusedTemplate)[]
  /** Listed tools in catalog order. */
  readonly toolList: readonly ToolEntry[]
  readonly promptList: readonly CatalogEntry[]
  readonly resourceList: readonly CatalogEntry[]
  readonly templateList: readonly TemplateEntry[]
  /** Short names for tools whose names are too long for clients. */
  readonly aliases: Aliases
  readonly problems: readonly CatalogNotice[]
  readonly listings: readonly Listing[]
  /** The last listings of backends that are down. Only workflows use these listings. */
  readonly absent: readonly Listing[]
  #apps: AppIndex | undefined
  #digests: Readonly<Record<ListKind, string>> | undefined

  /** `reserved` contains the names of the server's own tools. Backend tools with these names are not offered. */
  constructor(
    listings: readonly Listing[],
    aggregation: Aggregation,
    compose?: Composer,
    reserved: ReadonlySet<string> = new Set(),
    absent: readonly Listing[] = [],
  ) {
    const sorted = [...listings].sort((a, b) => compare(a.backend, b.backend))
    const problems: CatalogNotice[] = sorted.flatMap(({ violations }) => violations.problems)
    this.listings = sorted
    this.absent = absent
    const tools = resolveTools(sorted, aggregation, reserved, problems)
    const unlisted = {
      unnamed: tools.unnamed,
      absent: compose ? absentTools(sorted, absent, aggregation, reserved) : [],
    }
    this.tools = addWorkflows(tools.entries, compose, unlisted, problems)
    this.refusedTools = tools.refused
    const prompts = resolvePrompts(sorted, aggregation, problems)
    this.prompts = prompts.entries
    this.refusedPrompts = prompts.refused
    const resources = resolveResources(sorted, problems)
    this.resources = resources.entries
    this.refusedResources = resources.refused
    const templates = resolveTemplates(sorted, problems)
    this.templates = templates.entries
    this.refusedTemplates = templates.refused
    this.#templateOrder = templates.order
    this.toolList = sortedByKey([...this.tools.values()].filter(({ advertised }) => advertised))
    this.aliases = aliasesOf([...this.toolList, ...this.refusedTools.values()], aggregation.maxToolNameLength)
    this.promptList = sortedByKey([...this.prompts.values()])
    this.resourceList = sortedByKey([...this.resources.values()])
    this.templateList = sortedByKey([...this.templates.values()])
    this.problems = problems.map(makeVisible)
  }

  /** Returns the listed entries of one kind, in catalog order. */
  listOf(kind: ItemKind): readonly CatalogEntry[] {
    switch (kind) {
      case 'tools':
        return this.toolList
      case 'resources':
        return this.resourceList
      case 'templates':
        return this.templateList
      case 'prompts':
        return this.promptList
      default:
        return []
    }
  }

  /** The tools and pages of MCP Apps. */
  get apps(): AppIndex {
    this.#apps ??= new AppIndex(this)
    return this.#apps
  }

  /** One digest for each kind of list. A digest changes exactly when clients see a change. */
  get digests(): Readonly<Record<ListKind, string>> {
    this.#digests ??= {
      tools: digest(this.toolList),
      resources: digest([...this.resourceList, ...this.templateList]),
      prompts: digest(this.promptList),
    }
    return this.#digests
  }

  /** Returns the backend entry for a URI unless the entry is withheld. See `resourceAt`. */
  findResource(uri: string, linked?: string): CatalogEntry | undefined {
    const found = this.resourceAt(uri, linked)
    return found && 'refused' in found ? undefined : found
  }

  /**
   * Returns the backend entry for a URI, including withheld entries. The entry is the resource itself or, if there is
   * no such resource, the first template that the URI matches. `linked` is the backend of a URI that no list contains.
   * In this case, only this backend's templates are considered, and a URI without a matching template is read from the
   * backend directly.
   */
  resourceAt(uri: string, linked?: string): CatalogEntry | RefusedEntry | undefined {
    return (
      this.resources.get(uri) ??
      this.refusedResources.get(uri) ??
      this.#findTemplate(uri, linked) ??
      this.#unlisted(uri, linked ?? this.apps.backendOfPage(uri))
    )
  }

  /** Returns the entry for a resource that no list contains. The entry is refused if pinning has closed the backend. */
  #unlisted(uri: string, linked: string | undefined): CatalogEntry | RefusedEntry | undefined {
    const listing = this.listings.find(({ backend }) => backend === linked)
    if (!listing) return undefined
    const { backend, closed, prefixesPages, prefixesSkills } = listing
    const isPrefixed = isSkillAddress(uri) ? prefixesSkills : prefixesPages
    const entry = { key: uri, backend, original: isPrefixed ? unlistedUri(backend, uri) : uri }
    if (closed) return { ...entry, refused: closed }
    return { ...entry, json: Buffer.from(JSON.stringify({ uri })), isUnlisted: true }
  }

  /** Each backend has a separate matching budget, so one backend's templates cannot hide those of another backend. */
  #findTemplate(uri: string, linked: string | undefined): TemplateEntry | RefusedTemplate | undefined {
    const budgets = new Map<string, MatchWork>()
    const hasScheme = isUiAddress(uri) ? isUiAddress : isSkillAddress(uri) ? isSkillAddress : undefined
    const isPrefixed =
      hasScheme &&
      this.listings.some(({ prefixesPages, prefixesSkills }) =>
        hasScheme === isUiAddress ? prefixesPages : prefixesSkills,
      )
    return this.#templateOrder.find(({ key, backend, matches }) => {
      if (linked !== undefined && backend !== linked) return false
      // Any other template could also match another backend's pages and skills.
      if (isPrefixed && !hasScheme(key)) return false
      const work = budgets.get(backend) ?? { left: maxMatchWork }
      budgets.set(backend, work)
      return matches(uri, work)
    })
  }
}

/** Returns the tools from backends that are down, under the names that the tools have while their backend is up. */
function absentTools(
  listings: readonly Listing[],
  absent: readonly Listing[],
  aggregation: Aggregation,
  reserved: ReadonlySet<string>,
): readonly ToolEntry[] {
  if (absent.length === 0) return []
  const all = [...listings, ...absent].sort((a, b) => compare(a.backend, b.backend))
  const down = new Set(absent.map(({ backend }) => backend))
  const { entries, unnamed } = resolveTools(all, aggregation, reserved, [])
  return [...entries.values(), ...unnamed].filter(({ backend }) => down.has(backend))
}

/** Adds composite tools. A composite tool replaces a hidden tool with the same name, but not a listed tool. */
function addWorkflows(
  tools: Map<string, ToolEntry>,
  compose: Composer | undefined,
  unlisted: UnlistedTools,
  problems: CatalogNotice[],
): Map<string, ToolEntry> {
  if (!compose) return tools
  const { entries, problems: found } = compose(tools, unlisted)
  problems.push(...found)
  const all = new Map(tools)
  for (const entry of entries) {
    const known = all.get(entry.key)
    if (!known?.advertised) all.set(entry.key, entry)
    else {
      problems.push({
        kind: 'collision',
        subject: entry.key,
        message: `tool ${entry.key} is left out: ${known.backend || 'another workflow'} offers a tool with that name`,
      })
    }
  }
  return all
}

/** Makes every character of a notice visible, because backends choose the names in the notice. */
function makeVisible({ kind, subject, message }: CatalogNotice): CatalogNotice {
  return { kind, subject: visibleText(subject), message: visibleText(message) }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function sortedByKey<E extends { readonly key: string }>(entries: E[]): E[] {
  return entries.sort((a, b) => compare(a.key, b.key))
}

function digest(entries: readonly CatalogEntry[]): string {
  const items = entries.map(({ json }) => json)
  const lines = joinedItems(items, { between: '\n', after: items.length > 0 ? '\n' : '' })
  return hash('sha256', lines, 'base64url')
}

/**
 * Resolves items by URI. If two backends offer the same URI, the backend that comes first in alphabetical order is
 * used, because URIs cannot be renamed.
 */
function resolveByKey(
  listings: readonly Listing[],
  items: (listing: Listing) => readonly CatalogItem[],
  what: string,
  problems: CatalogNotice[],
): Map<string, ClaimedEntry> {
  const entries = new Map<string, ClaimedEntry>()
  for (const listing of listings) {
    for (const { key, original = key, json, refused } of items(listing)) {
      if (!holdsName(refused)) continue
      const known = entries.get(key)
      if (!known)
        entries.set(key, { key, backend: listing.backend, original, json, ...(refused && { refused }) })
      else {
        problems.push({
          kind: 'same_address',
          subject: key,
          message: `${what} ${key} from ${listing.backend} is left out: ${known.backend} also offers it`,
        })
      }
    }
  }
  return entries
}

interface ClaimedEntry extends CatalogEntry {
  readonly refused?: Refused
}

function resolveResources(listings: readonly Listing[], problems: CatalogNotice[]) {
  const entries = new Map<string, CatalogEntry>()
  const refused = new Map<string, RefusedEntry>()
  for (const [key, { refused: reason, ...entry }] of resolveByKey(
    listings,
    ({ resources }) => resources,
    'resource',
    problems,
  )) {
    if (reason === undefined) entries.set(key, entry)
    else refused.set(key, { key, backend: entry.backend, original: entry.original, refused: reason })
  }
  return { entries, refused }
}

function resolveTemplates(listings: readonly Listing[], problems: CatalogNotice[]) {
  const entries = new Map<string, TemplateEntry>()
  const refused = new Map<string, RefusedTemplate>()
  for (const [key, { refused: reason, ...entry }] of resolveByKey(
    listings,
    ({ templates }) => templates,
    'resource template',
    problems,
  )) {
    const matches = compileTemplate(key)
    if (reason === undefined) entries.set(key, { ...entry, matches })
    else refused.set(key, { key, backend: entry.backend, original: entry.original, refused: reason, matches })
  }
  const holding = sortedByKey([...entries.values(), ...refused.values()])
  const neverApproved: RefusedTemplate[] = []
  for (const { backend, templates } of listings) {
    for (const { key, original = key, refused: reason } of templates) {
      if (reason === undefined || holdsName(reason) || entries.has(key) || refused.has(key)) continue
      const entry = { key, backend, original, refused: reason, matches: compileTemplate(key) }
      refused.set(key, entry)
      neverApproved.push(entry)
    }
  }
  return { entries, refused, order: [...holding, ...neverApproved] }
}
