/**
 * Prepares the tools and pages of MCP Apps in a backend's listing. Each listing is prepared once. A listing without
 * pages and without tool visibilities stays unchanged.
 */
import { JsonObject } from '../../../mcp/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { Listing } from '../../catalog/listing.ts'
import { clientAddress, isUiAddress, pageOwner } from '../../catalog/names/ui-addresses.ts'
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'
import { mayContainUi, readToolUi } from '../../model/catalog/tool-ui.ts'
import { type PageDrift, pageName } from './page-drift.ts'
import type { PageReads } from './page-reads.ts'
import type { PageLimits } from './page-meta.ts'
import { type RewriteRules, withPageAddress, withResourceAddress } from './rewrite.ts'

export interface AppListingsOptions extends PageLimits {
  /** Names of the configured backends, whose addresses may be equal. Undefined if there is only one backend. */
  readonly backends: ReadonlySet<string> | undefined
  readonly reads: PageReads
  readonly drift: PageDrift
  readonly events: Pick<Events, 'emit'>
}

/** Maximum number of pages that are reported for one backend. */
const maxReportedPages = 100

export class AppListings {
  /** The pages that clients have read. A reload keeps them. */
  readonly reads: PageReads
  /** The pages that differ from their locks. A reload keeps them unless the lock changes. */
  readonly drift: PageDrift
  readonly #options: AppListingsOptions
  readonly #prepared = new WeakMap<Listing, Listing>()
  readonly #appBackends = new Set<string>()
  /** The reported pages, keyed by backend. */
  readonly #narrowedPages = new Map<string, Set<string>>()

  constructor(options: AppListingsOptions) {
    this.#options = options
    this.reads = options.reads
    this.drift = options.drift
  }

  /** Backends whose lists have contained pages or tool visibilities. Their results may contain addresses of pages. */
  get appBackends(): ReadonlySet<string> {
    return this.#appBackends
  }

  /** Names of the configured backends. Undefined if there is only one backend. */
  get backends(): ReadonlySet<string> | undefined {
    return this.#options.backends
  }

  rulesFor(backend: string): RewriteRules {
    const { backends, allowedOrigins, allowedPermissions } = this.#options
    return {
      allowedOrigins,
      allowedPermissions,
      addressOf: (uri) => (backends ? clientAddress(backend, uri) : uri),
      onNarrowed: (uri, affected) => this.#reportNarrowed(backend, uri, affected),
    }
  }

  /** Reports a page once per configuration. */
  #reportNarrowed(backend: string, uri: string, affected: readonly string[]): void {
    const page = pageName(uri)
    const reported = this.#narrowedPages.get(backend) ?? new Set()
    if (reported.has(page) || reported.size >= maxReportedPages) return
    this.#narrowedPages.set(backend, reported.add(page))
    this.#options.events.emit('page_narrowed', { backend, page, affected })
  }

  /**
   * Returns the backend to which a client address belongs, whether or not the backend is available. No other backend
   * may provide the page. Returns undefined for addresses that do not begin with the name of a backend.
   */
  ownerOf(uri: string): string | undefined {
    const { backends } = this.#options
    return backends && pageOwner(uri, backends)
  }

  /**
   * Returns the params of `notifications/resources/updated` with each address that clients may have used.
   * A session drops the addresses to which its client has not subscribed.
   */
  updatesOf(backend: string, params: Buffer): readonly Buffer[] {
    const object = new JsonObject(params)
    const uri = object.text('uri') ?? ''
    const address = this.rulesFor(backend).addressOf(uri)
    return address === uri ? [params] : [object.with({ uri: JSON.stringify(address) }), params]
  }

  /** Returns the listing as clients see it. */
  apply(listing: Listing): Listing {
    const known = this.#prepared.get(listing)
    if (known) return known
    const prepared = this.#prepare(listing)
    if (prepared !== listing) this.#appBackends.add(listing.backend)
    const shown = this.#options.backends ? { ...prepared, prefixesPages: true } : prepared
    this.#prepared.set(listing, shown)
    return shown
  }

  #prepare(listing: Listing): Listing {
    const rules = this.rulesFor(listing.backend)
    const tools = listing.tools.map((tool) => preparedTool(tool, rules))
    const resources = listing.resources.map((item) => preparedPage(item, 'uri', rules))
    const templates = listing.templates.map((item) => preparedPage(item, 'uriTemplate', rules))
    const isSame = [
      [tools, listing.tools],
      [resources, listing.resources],
      [templates, listing.templates],
    ].every(([ours = [], theirs = []]) => ours.every((item, i) => item === theirs[i]))
    return isSame ? listing : { ...listing, tools, resources, templates }
  }
}

function preparedTool(tool: ToolItem, rules: RewriteRules): ToolItem {
  if (!mayContainUi(tool.json)) return tool
  const json = withPageAddress(new JsonObject(tool.json), rules)
  const ui = readToolUi(new JsonObject(json))
  if (!ui && json === tool.json) return tool
  const { sessionJson } = tool
  return {
    ...tool,
    json,
    ...(sessionJson && { sessionJson: withPageAddress(new JsonObject(sessionJson), rules) }),
    ...(ui && { ui }),
  }
}

function preparedPage(item: CatalogItem, member: 'uri' | 'uriTemplate', rules: RewriteRules): CatalogItem {
  if (!isUiAddress(item.key)) return item
  const { key, sessionJson } = item
  const change = (json: Buffer): Buffer => withResourceAddress(new JsonObject(json), member, rules)
  return {
    ...item,
    key: rules.addressOf(key),
    original: key,
    json: change(item.json),
    ...(sessionJson && { sessionJson: change(sessionJson) }),
  }
}
