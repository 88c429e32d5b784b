/**
 * Reads the catalog for operations. Finds the entries that a client sees, the target of an operation, and list pages.
 *
 * This module does not depend on protocol revisions or HTTP. chain.ts defines the order of checks.
 * Source: docs/reference/specification/virtual-server.md (what the service does, operational.failureHandling).
 */
import type { ViewOptions } from '../catalog/listings.ts'
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError, own } from '../../../schemas/index.ts'
import type { Changes, JsonObject } from '../../mcp/index.ts'
import type { AccessRequest, Facts } from '../../policy/index.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Cursors } from '../catalog/cursors.ts'
import { Lookup, type LookupParts } from '../catalog/lookup.ts'
import type { ResourceLinks } from '../catalog/resource-links.ts'
import {
  factsIn,
  findCurrentTool,
  makeEntryFinder,
  refusedFacts,
  requireDecidedTarget,
  ifAdvertised,
} from '../catalog/facts.ts'
import { backendUri } from '../catalog/names/ui-addresses.ts'
import { renderPage } from '../catalog/pages.ts'
import { extensionTarget } from './extension-methods.ts'
import { notText, requireMirrored, requireRef, requireText } from './params.ts'
import type { ItemKind, ToolEntry } from '../model/catalog/entries.ts'
import type { CatalogEntry } from '../model/catalog/entry.ts'
import type { ExtensionSet } from '../model/extensions.ts'
import type { OperationClient, ClientSession } from '../model/session.ts'
import type { Link, Operation, Target } from '../model/operation.ts'
import { type Outcome, resultOutcome } from '../model/outcome.ts'
import { findResultMismatches } from '../catalog/result-misfits.ts'
import { type PinParts, refusal, requireFittingCompletion } from '../features/pinning/refusal.ts'
import type { AppListings } from '../features/apps/listing.ts'
import { isSkillMethod, skillFacts, type SkillShelf, skillTarget } from '../features/skills/index.ts'
import type { Guard } from '../features/guardrails/guard.ts'
import { taskTarget } from '../features/tasks/requests.ts'

/** The parts that a reload replaces. */
export interface CallParts extends LookupParts {
  /** Undefined if no guardrails are configured. */
  readonly guard?: Guard | undefined
  /** The only backend in the configuration. Undefined if there are several backends. */
  readonly onlyBackend: string | undefined
  /** Resource URIs that backends returned in results. */
  readonly links: ResourceLinks
  /** The enabled protocol extensions. */
  readonly extensions: ExtensionSet
  /** The pages and tools of MCP Apps. Undefined if MCP Apps is disabled. */
  readonly apps: AppListings | undefined
  /** The skills of the backends. Undefined if skills are disabled. */
  readonly skills: SkillShelf | undefined
}

const listMethods: Readonly<Record<string, ItemKind>> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'templates',
  'prompts/list': 'prompts',
}

const resourceKinds: readonly ItemKind[] = ['resources', 'templates']

export class Core {
  /** The current parts. A reload replaces these parts, and operations that begin afterwards use the new parts. */
  parts: CallParts
  readonly pins: PinParts
  readonly #lookup: Lookup
  readonly cursors: Cursors

  constructor(parts: CallParts, cursors: Cursors, pins: PinParts) {
    this.parts = parts
    this.pins = pins
    this.#lookup = new Lookup(this)
    this.cursors = cursors
  }

  /** Responds to an operation without a target: a list request, or a completion request that no backend supports. */
  answer(operation: Operation): Promise<Outcome> {
    const kind = own(listMethods, operation.method)
    if (kind) return this.#list(operation, kind)
    if (operation.method === 'completion/complete') return Promise.resolve(noCompletion())
    return Promise.reject(new GatehouseError('METHOD_NOT_FOUND'))
  }

  /**
   * Finds the target of an operation. List requests, and completion requests that no backend supports, have no target.
   * Rejects with INVALID_PARAMS, RESOURCE_NOT_FOUND, METHOD_NOT_FOUND or HEADER_MISMATCH. Rejects with FORBIDDEN if the
   * entry is withheld. Rejects with BACKEND_UNAVAILABLE if the entry differs from the authorized entry or cannot
   * currently be determined.
   *
   * This link runs after authorization, so an unauthorized caller cannot find out which names exist. `featureTools` are
   * Gatehouse's own tools that a later link runs. The catalog does not contain these tools.
   */
  resolveTarget(featureTools: ReadonlySet<string>): Link {
    const resolveTarget: Link = async (operation, next) => {
      if (operation.method !== 'tools/call')
        return next({ ...operation, target: await this.#targetOf(operation) })
      const { client, params, originalParams = params, headers, origin } = operation
      const name = params.text('name')
      if (name === undefined) throw notText('name')
      if (featureTools.has(name)) return next(operation)
      const args = params.raw('arguments')
      if (args !== undefined && args[0] !== 0x7b) {
        throw new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: arguments must be an object' })
      }
      const { members, views, leftOut } = this.parts
      // If pinning is off and no backend is missing, almost every tool is in the current view.
      const view = views.awaitsAnnounced || leftOut.length > 0 ? undefined : views.ready(members, client)
      const known = view?.isComplete ? view.catalog.tools.get(name) : undefined
      const entry = known?.advertised ? known : await this.#findTool(client, name)
      if (origin) requireDecidedTarget(origin, entry)
      if (!entry.run && headers) requireMirrored(entry, originalParams, headers)
      const changes = entry.original === name ? {} : originalName(entry)
      return next({ ...operation, target: { entry, changes, run: entry.run } })
    }
    return resolveTarget
  }

  /** Returns the target of an operation that does not call a tool. */
  async #targetOf(operation: Operation): Promise<Target | undefined> {
    switch (operation.method) {
      case 'prompts/get':
        return this.#promptTarget(operation)
      case 'resources/read':
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return this.#resourceTarget(operation)
      case 'completion/complete':
        return this.#completionTarget(operation)
      default:
        if (this.parts.skills && isSkillMethod(operation.method))
          return skillTarget(operation, this.parts.skills, this.#lookup)
        if (operation.task) return taskTarget(this.peek(operation.client).tools, operation.task)
        return own(listMethods, operation.method) ? undefined : this.#extensionTarget(operation)
    }
  }

  async #extensionTarget(operation: Operation): Promise<Target> {
    const { client, origin } = operation
    const target = await extensionTarget(operation, this.parts.extensions, {
      tool: (name) => this.#findTool(client, name),
      resource: (uri) => this.#findResource(client, uri, operation.method),
    })
    // Gatehouse's own tools have no backend.
    if (target.entry.backend === '') throw this.#notFound(client, 'tool', target.entry.key)
    if (origin) requireDecidedTarget(origin, target.entry)
    return target
  }

  /** Returns an advertised tool. Rejects with INVALID_PARAMS if there is none, and with FORBIDDEN if it is withheld. */
  async #findTool(client: OperationClient, name: string): Promise<ToolEntry> {
    const entry = await this.#lookup.find(
      client,
      ({ tools, refusedTools }) => ifAdvertised(tools.get(name)) ?? refusedTools.get(name),
    )
    if (!entry) throw this.#notFound(client, 'tool', name)
    if ('refused' in entry) throw refusal(entry, 'tools/call', this.pins)
    return entry
  }

  /** Returns the catalog that a client sees. With `fail`, rejects with BACKEND_UNAVAILABLE if any backend is down. */
  view(client: OperationClient, options: ViewOptions): Promise<Catalog> {
    return this.#lookup.view(client, options)
  }

  /** Returns the catalog that a client sees. Never rejects, even if backends are down. */
  async viewAvailable(client: OperationClient): Promise<Catalog> {
    const { members, views } = this.parts
    return (await views.query(members, client, { waitForFresh: true })).catalog
  }

  /** Returns a client's cached catalog without contacting a backend. */
  peek(client: OperationClient): Catalog {
    const { members, views } = this.parts
    return views.peek(members, client)
  }

  /**
   * Returns the tool's own name. Accepts an alias or the tool's own name. Returns undefined if no tool has that name.
   */
  nameOf(client: OperationClient, alias: string): Promise<string | undefined> {
    return this.#lookup.nameOf(client, alias)
  }

  backendOfResource(client: OperationClient, uri: string): string | undefined {
    const catalog = this.peek(client)
    const isOwned = this.parts.apps?.ownerOf(uri) !== undefined
    const address = (isOwned ? undefined : catalog.apps.addressOf(uri)) ?? uri
    return (catalog.findResource(uri, this.#linkedBackend(client, uri)) ?? catalog.findResource(address))
      ?.backend
  }

  /**
   * Returns the backend for a URI that no list contains. The result is the only configured backend, or the backend that
   * returned the URI. A backend cannot provide pages under another backend's addresses.
   */
  #linkedBackend(client: OperationClient, uri: string): string | undefined {
    const { onlyBackend, links, members, views, apps, skills } = this.parts
    const backend = skills?.listings.addresses.ownerOf(uri) ?? onlyBackend ?? links.backendOf(client, uri)
    if (skills?.listings.isForeign(uri)) return undefined
    if ((apps?.ownerOf(uri) ?? backend) !== backend) return undefined
    const listings = backend === undefined ? undefined : members.get(backend)?.listings
    if (!listings) return undefined
    // Without the backend's list of templates, Gatehouse cannot determine which URIs pinning refuses.
    const { defects = [] } = (views.awaitsAnnounced && listings.peek(client)) || {}
    const isUnknown = defects.some(({ kind, state }) => kind === 'templates' && state === 'failed')
    return isUnknown ? undefined : backend
  }

  /** Sends a notification to every backend that has a connection for the session. */
  notifyBackends(session: ClientSession, method: string): void {
    for (const { backend } of this.parts.members.values()) backend.notify(session, method)
  }

  /** Sends the log level requested by a session's client to the session's backends. */
  setLogLevel(session: ClientSession & { readonly logLevel: string | undefined }): void {
    const { logLevel } = session
    if (logLevel === undefined) return
    for (const { backend } of this.parts.members.values()) backend.setLogLevel(session, logLevel)
  }

  async #list(operation: Operation, kind: ItemKind): Promise<Outcome> {
    const { client, params } = operation
    const catalog = await this.#lookup.view(client, { waitForFresh: true, list: kind })
    const entries = catalog.listOf(kind)
    const page = { era: client.era, cursor: params.text('cursor'), cursors: this.cursors }
    return { kind: 'result', result: renderPage(kind, entries, page) }
  }

  /** Returns the raw result with the first page of a list. */
  firstPage(catalog: Catalog, kind: ItemKind, { era }: OperationClient): Buffer {
    return renderPage(kind, catalog.listOf(kind), { era, cursor: undefined, cursors: this.cursors })
  }

  /**
   * Returns facts about the requested item. Uses the same lookup as the request itself. Returns undefined if the item
   * does not exist, and an error if its existence cannot currently be determined.
   */
  async factsOf(
    client: OperationClient,
    { action, id }: AccessRequest,
  ): Promise<Facts | GatehouseError | undefined> {
    if (action === 'get_skill') return skillFacts(id, this.parts.skills)
    const linked = action === 'read_resource' ? this.#linkedBackend(client, id) : undefined
    const findEntry = makeEntryFinder(action, id, linked)
    const facts = await this.#lookup.find(client, (catalog) => {
      const entry = findEntry(catalog)
      return entry ? factsIn(entry, id) : refusedFacts(catalog, action, id, linked)
    })
    if (facts) return facts
    if (action === 'read_resource') return this.#lookup.errorForUnlisted(client, undefined, resourceKinds)
    return this.#lookup.errorForUnlisted(client, id, [action === 'call_tool' ? 'tools' : 'prompts'])
  }

  /** Like `factsOf`, but consults only the cache. */
  peekFacts(client: OperationClient, { action, id }: AccessRequest): Facts | undefined {
    if (action === 'get_skill') return skillFacts(id, this.parts.skills)
    const linked = action === 'read_resource' ? this.#linkedBackend(client, id) : undefined
    const entry = makeEntryFinder(action, id, linked)(this.peek(client))
    return entry && factsIn(entry, id)
  }

  /** Lists mismatches between a structured result and the output schema that the client sees, one line each. */
  async listResultMismatches(
    operation: Operation,
    structured: Buffer | undefined,
  ): Promise<readonly string[]> {
    const { client, params } = operation
    const entry = ifAdvertised(this.peek(client).tools.get(params.text('name') ?? ''))
    if (!entry) return []
    const { json, sessionJson = json } = entry
    const definition = client.era === 'session' ? sessionJson : json
    return findResultMismatches(definition, structured, this.pins.matcherFor(operation, entry))
  }

  #notFound(client: OperationClient, what: 'tool' | 'prompt', name: string): GatehouseError {
    const detail = `${what} ${JSON.stringify(name)} not found`
    const kind = what === 'tool' ? 'tools' : 'prompts'
    return (
      this.#lookup.errorForUnlisted(client, name, [kind]) ?? new GatehouseError('INVALID_PARAMS', { detail })
    )
  }

  /**
   * Rereads a backend's lists and returns the new target of a call that the backend rejected because of its mirrored
   * headers. Undefined if the tool no longer exists. Rejects with BACKEND_UNAVAILABLE if the name now belongs to a
   * different tool.
   */
  async retarget(operation: Operation, { entry: before, ...target }: Target): Promise<Target | undefined> {
    const name = requireText(operation.params, 'name')
    this.parts.members.get(before.backend)?.listings.expire()
    const entry = ifAdvertised((await this.view(operation.client, { waitForFresh: true })).tools.get(name))
    if (!entry || entry.run) return undefined
    requireDecidedTarget(operation.origin ?? { backend: before.backend, original: before.original }, entry)
    return { ...target, entry }
  }

  /**
   * Returns a workflow step's target. The tool may have changed since the workflow started. Rejects with FORBIDDEN if
   * the tool is now withheld, and with INVALID_PARAMS if the tool no longer exists.
   */
  async stepTarget(
    { client }: Operation,
    listedTool: ToolEntry,
    timeoutMs: number | undefined,
  ): Promise<Target> {
    const { members, views } = this.parts
    const target = { changes: {}, timeoutMs, bridges: true, isStep: true }
    if (!views.awaitsAnnounced) return { ...target, entry: listedTool }
    for (const { listings } of members.values()) listings.changes.flush(client.session?.id)
    const view = views.ready(members, client) ?? (await views.query(members, client, { waitForFresh: false }))
    const entry = findCurrentTool(view.catalog, listedTool)
    if ('refused' in entry) throw refusal(entry, 'tools/call', this.pins)
    return { ...target, entry }
  }

  /**
   * Checks the headers that mirror a tool call's arguments. Rejects with HEADER_MISMATCH. Does not check unknown tools.
   */
  async checkMirrored(
    client: OperationClient,
    params: JsonObject,
    headers: IncomingHttpHeaders,
  ): Promise<void> {
    const requested = params.text('name') ?? ''
    const { aliases, tools } = this.peek(client)
    const name = aliases.nameByAlias.get(requested) ?? requested
    const entry = tools.get(name) ?? (await this.view(client, { waitForFresh: false })).tools.get(name)
    if (entry) requireMirrored(entry, params, headers)
  }

  async #promptTarget(operation: Operation): Promise<Target> {
    const name = requireText(operation.params, 'name')
    const entry = await this.#lookup.find(
      operation.client,
      (catalog) => catalog.prompts.get(name) ?? catalog.refusedPrompts.get(name),
    )
    if (!entry) throw this.#notFound(operation.client, 'prompt', name)
    if ('refused' in entry) throw refusal(entry, 'prompts/get', this.pins)
    if (operation.origin) requireDecidedTarget(operation.origin, entry)
    return { entry, changes: originalName(entry) }
  }

  async #resourceTarget(operation: Operation): Promise<Target> {
    const uri = requireText(operation.params, 'uri')
    const entry = await this.#findResource(operation.client, uri, operation.method)
    if (operation.origin) requireDecidedTarget(operation.origin, entry)
    const original = backendUri(entry, uri)
    return { entry, changes: original === uri ? {} : { uri: JSON.stringify(original) } }
  }

  /**
   * Returns the entry for a URI. Rejects with FORBIDDEN if the entry is withheld from clients, and with
   * RESOURCE_NOT_FOUND if no entry exists. Rejects with BACKEND_UNAVAILABLE if the entry cannot currently be
   * determined.
   */
  async #findResource(client: OperationClient, uri: string, method: string): Promise<CatalogEntry> {
    const linked = this.#linkedBackend(client, uri)
    // Only reads check whether such an address belongs to a skill.
    const isUnknown = method !== 'resources/read' && this.parts.skills?.listings.hasOtherScheme(uri)
    const find = (catalog: Catalog) => (isUnknown ? undefined : catalog.resourceAt(uri, linked))
    const entry = await this.#lookup.find(client, find)
    if (entry && 'refused' in entry) throw refusal(entry, 'resources/read', this.pins)
    if (entry) return entry
    throw (
      this.#lookup.errorForUnlisted(client, undefined, resourceKinds) ??
      new GatehouseError('RESOURCE_NOT_FOUND', { data: { uri } })
    )
  }

  async #completionTarget(operation: Operation): Promise<Target | undefined> {
    const { ref, type, name } = requireRef(operation.params)
    const catalog = await this.view(operation.client, { waitForFresh: false })
    const entry =
      type === 'ref/prompt'
        ? catalog.prompts.get(name)
        : (catalog.templates.get(name) ?? catalog.findResource(name))
    const offersCompletion = catalog.listings.find(({ backend }) => backend === entry?.backend)?.server
      .capabilities.completions
    if (entry && operation.origin) requireDecidedTarget(operation.origin, entry)
    if (!entry || !offersCompletion) return undefined
    if (entry.check)
      await requireFittingCompletion(operation, entry.check, this.pins.matcherFor(operation, entry))
    if (type === 'ref/prompt') return { entry, changes: { ref: ref.with(originalName(entry)) } }
    const original = backendUri(entry, name)
    return { entry, changes: original === name ? {} : { ref: ref.with({ uri: JSON.stringify(original) }) } }
  }
}

function originalName({ original }: CatalogEntry): Changes {
  return { name: JSON.stringify(original) }
}

/** Returns the response to a completion request that no backend supports. */
function noCompletion(): Outcome {
  return resultOutcome({ completion: { values: [], total: 0, hasMore: false } })
}
