/**
 * Carries out operations: answers lists from the catalog and takes everything else to the backend it belongs to.
 *
 * Knows no protocol revision and no HTTP. What stands between it and the edges is in pipeline.ts.
 * Source: docs/specification/virtual-server.md (what the service does, operational.failureHandling).
 */
import type { ViewOptions } from '../catalog/listings.ts'
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError, own } from '../../../schemas/index.ts'
import { JsonObject, rpcCode } from '../../mcp/index.ts'
import type { AccessRequest, Facts } from '../../policy/index.ts'
import { isBackendError } from '../backends/backend-errors.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Cursors } from '../catalog/cursors.ts'
import { Lookup } from '../catalog/lookup.ts'
import { factsIn, lookFor, refusedFacts, requireDecided, visible } from '../catalog/facts.ts'
import { renderPage } from '../catalog/pages.ts'
import type { CatalogEntry, ItemKind, RefusedEntry, ToolEntry } from '../model/catalog/entries.ts'
import type { QuotaParts } from '../features/quotas/spending.ts'
import { type CallParts, EntryCalls } from './entry-calls.ts'
import {
  type OperationClient,
  type ClientSession,
  type Operation,
  type Outcome,
  ownOperation,
  resultOutcome,
  toolErrorOutcome,
} from '../model/operation.ts'
import { isHeaderMismatch, requireMirrored } from './mirrored.ts'
import { resultMisfits } from '../catalog/result-misfits.ts'
import { type PinParts, refusal, requireFittingCompletion } from '../features/pinning/refusal.ts'

const listMethods: Readonly<Record<string, ItemKind>> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'templates',
  'prompts/list': 'prompts',
}

const resourceKinds: readonly ItemKind[] = ['resources', 'templates']

export class Core {
  #parts: CallParts
  readonly #lookup = new Lookup(() => this.#parts)
  readonly #cursors: Cursors
  readonly #pins: PinParts
  /** Takes operations to backends; for those who hold a tool already. */
  readonly calls: EntryCalls

  constructor(parts: CallParts, cursors: Cursors, pins: PinParts, quotas: QuotaParts) {
    this.#parts = parts
    this.#cursors = cursors
    this.#pins = pins
    this.calls = new EntryCalls(() => this.#parts, pins, quotas)
  }

  get parts(): CallParts {
    return this.#parts
  }

  /** Takes effect with the next operation. */
  replace(parts: CallParts): void {
    this.#parts = parts
  }

  /** Rejects with GatehouseError; errors that a backend reported in MCP come back as outcomes. */
  perform(operation: Operation): Promise<Outcome> {
    const kind = own(listMethods, operation.method)
    if (kind) return this.#list(operation, kind)
    switch (operation.method) {
      case 'tools/call':
        return this.#callTool(operation)
      case 'prompts/get':
        return this.#getPrompt(operation)
      case 'resources/read':
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return this.#resource(operation)
      case 'completion/complete':
        return this.#complete(operation)
      default:
        return Promise.reject(new GatehouseError('METHOD_NOT_FOUND'))
    }
  }

  /** What a client sees. With `fail`, rejects with BACKEND_UNAVAILABLE when any backend is down. */
  view(client: OperationClient, options: ViewOptions): Promise<Catalog> {
    return this.#lookup.view(client, options)
  }

  /** What a client sees, whatever is down. Never rejects. */
  async present(client: OperationClient): Promise<Catalog> {
    const { members, views } = this.#parts
    return (await views.of(members, client, { waitForFresh: true })).catalog
  }

  /** What is known without asking any backend. */
  peek(client: OperationClient): Catalog {
    const { members, views } = this.#parts
    return views.peek(members, client)
  }

  /** The own name of a tool that a client may call by an alias; undefined when it is none. */
  nameOf(client: OperationClient, alias: string): Promise<string | undefined> {
    return this.#lookup.nameOf(client, alias)
  }

  backendOfResource(client: OperationClient, uri: string): string | undefined {
    return this.peek(client).findResource(uri, this.#linkedBackend(client, uri))?.backend
  }

  /** Returns the backend of a URI that no list contains: the only backend, or the one that returned the URI. */
  #linkedBackend(client: OperationClient, uri: string): string | undefined {
    const { onlyBackend, links, members, views } = this.#parts
    const backend = onlyBackend ?? links.backendOf(client, uri)
    const listings = backend === undefined ? undefined : members.get(backend)?.listings
    if (!listings) return undefined
    // Without the backend's list of templates, it is unknown which URIs pinning refuses.
    const { defects = [] } = (views.awaitsAnnounced && listings.peek(client)) || {}
    const isUnknown = defects.some(({ kind, state }) => kind === 'templates' && state === 'failed')
    return isUnknown ? undefined : backend
  }

  /** Subscribes a client to a resource. */
  subscribe(client: OperationClient, uri: string, signal: AbortSignal): Promise<Outcome> {
    return this.perform(ownOperation(client, 'resources/subscribe', { uri }, signal))
  }

  /** Sends a notification to every backend that has a connection for the session. */
  notifyBackends(session: ClientSession, method: string): void {
    for (const { backend } of this.#parts.members.values()) backend.notify(session, method)
  }

  /** Tells the backends of a session which log level its client wants. */
  setLogLevel(session: ClientSession & { readonly logLevel: string | undefined }): void {
    const { logLevel } = session
    if (logLevel === undefined) return
    for (const { backend } of this.#parts.members.values()) backend.setLogLevel(session, logLevel)
  }

  async #list(operation: Operation, kind: ItemKind): Promise<Outcome> {
    const { client, params } = operation
    const catalog = await this.#lookup.view(client, { waitForFresh: true, list: kind })
    const entries = listOf(catalog, kind)
    const page = { era: client.era, cursor: params.text('cursor'), cursors: this.#cursors }
    return { kind: 'result', result: renderPage(kind, entries, page) }
  }

  /** Returns the raw result with the first page of a list. */
  firstPage(catalog: Catalog, kind: ItemKind, { era }: OperationClient): Buffer {
    return renderPage(kind, listOf(catalog, kind), { era, cursor: undefined, cursors: this.#cursors })
  }

  /**
   * What is known of something that a client names, looked up as the request would; undefined when there is no such
   * thing, an error when that cannot be known now.
   */
  async factsOf(
    client: OperationClient,
    { action, id }: AccessRequest,
  ): Promise<Facts | GatehouseError | undefined> {
    const linked = action === 'read_resource' ? this.#linkedBackend(client, id) : undefined
    const look = lookFor(action, id, linked)
    const facts = await this.#lookup.find(client, (catalog) => {
      const entry = look(catalog)
      return entry ? factsIn(entry, id) : refusedFacts(catalog, action, id, linked)
    })
    if (facts) return facts
    if (action === 'read_resource') return this.#lookup.unlisted(client, undefined, resourceKinds)
    return this.#lookup.unlisted(client, id, [action === 'call_tool' ? 'tools' : 'prompts'])
  }

  /** The same of what is known without asking any backend. */
  peekFacts(client: OperationClient, { action, id }: AccessRequest): Facts | undefined {
    const linked = action === 'read_resource' ? this.#linkedBackend(client, id) : undefined
    const entry = lookFor(action, id, linked)(this.peek(client))
    return entry && factsIn(entry, id)
  }

  /** What of a structured result is not as the called tool says, as clients are told it; one line each. */
  async misfits(operation: Operation, structured: Buffer | undefined): Promise<readonly string[]> {
    const { client, params } = operation
    const entry = visible(this.peek(client).tools.get(params.text('name') ?? ''))
    if (!entry) return []
    const { json, sessionJson = json } = entry
    const definition = client.era === 'session' ? sessionJson : json
    return resultMisfits(definition, structured, this.#pins.matcherFor(operation, entry))
  }

  /**
   * The tool that a call is for; its backend may be down. Throws, or rejects with, INVALID_PARAMS when the call is malformed
   * or there is no such tool, BACKEND_UNAVAILABLE when that cannot be known now, and HEADER_MISMATCH.
   */
  calledTool(operation: Operation): ToolEntry | Promise<ToolEntry> {
    const { client, params } = operation
    const name = requireText(params, 'name')
    const args = params.raw('arguments')
    if (args !== undefined && args[0] !== 0x7b) {
      throw new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: arguments must be an object' })
    }
    const look = (catalog: Catalog) => visible(catalog.tools.get(name)) ?? catalog.refusedTools.get(name)
    const ready = this.#lookup.findReady(client, look)
    if (ready) return this.#callable(operation, ready)
    return this.#lookup.find(client, look).then((entry) => {
      if (!entry) throw this.#notFound(client, 'tool', name)
      return this.#callable(operation, entry)
    })
  }

  #callable(operation: Operation, entry: ToolEntry | RefusedEntry): ToolEntry {
    const { params, sent = params, headers, origin } = operation
    if ('refused' in entry) throw refusal(entry, 'tools/call', this.#pins)
    requireDecided(origin, entry)
    if (!entry.run && headers) requireMirrored(entry, sent, headers)
    return entry
  }

  #notFound(client: OperationClient, what: 'tool' | 'prompt', name: string): GatehouseError {
    const detail = `${what} ${JSON.stringify(name)} not found`
    const kind = what === 'tool' ? 'tools' : 'prompts'
    return this.#lookup.unlisted(client, name, [kind]) ?? new GatehouseError('INVALID_PARAMS', { detail })
  }

  async #callTool(operation: Operation): Promise<Outcome> {
    const found = this.calledTool(operation)
    const entry = found instanceof Promise ? await found : found
    const { run } = entry
    if (run) return this.#parts.guard?.around(operation, entry, run) ?? run(operation)
    try {
      const outcome = await this.#callOriginal(operation, entry)
      return isHeaderMismatch(outcome) ? await this.#callAgain(operation, entry) : outcome
    } catch (error) {
      // A tool that could not be run is a result that a model can read, not an error of the protocol.
      if (!isBackendError(error) || operation.signal.aborted) throw error
      return toolErrorOutcome(error.message)
    }
  }

  #callOriginal(operation: Operation, entry: ToolEntry): Promise<Outcome> {
    return this.calls.call(operation, entry, { name: JSON.stringify(entry.original) })
  }

  /**
   * The backend wants other arguments mirrored in headers than its list said: the list is read again, and the call, which
   * was not carried out, is made once more. Rejects with BACKEND_PROTOCOL when that does not help: the headers are ours.
   */
  async #callAgain(operation: Operation, { backend }: ToolEntry): Promise<Outcome> {
    const name = requireText(operation.params, 'name')
    this.#parts.members.get(backend)?.listings.expire()
    const entry = visible((await this.view(operation.client, { waitForFresh: true })).tools.get(name))
    if (entry) requireDecided(operation.origin, entry)
    const outcome = entry && !entry.run ? await this.#callOriginal(operation, entry) : undefined
    if (outcome && !isHeaderMismatch(outcome)) return outcome
    throw new GatehouseError('BACKEND_PROTOCOL', {
      detail: `backend ${backend}: the headers of the call do not fit`,
      data: { backend },
    })
  }

  /**
   * Checks the headers that mirror arguments of a tool call. Rejects with HEADER_MISMATCH. A tool that is not known is
   * not checked here.
   */
  async checkMirrored(
    client: OperationClient,
    params: JsonObject,
    headers: IncomingHttpHeaders,
  ): Promise<void> {
    const given = params.text('name') ?? ''
    const { aliases, tools } = this.peek(client)
    const name = aliases.names.get(given) ?? given
    const entry = tools.get(name) ?? (await this.view(client, { waitForFresh: false })).tools.get(name)
    if (entry) requireMirrored(entry, params, headers)
  }

  async #getPrompt(operation: Operation): Promise<Outcome> {
    const name = requireText(operation.params, 'name')
    const entry = await this.#lookup.find(
      operation.client,
      (catalog) => catalog.prompts.get(name) ?? catalog.refusedPrompts.get(name),
    )
    if (!entry) throw this.#notFound(operation.client, 'prompt', name)
    if ('refused' in entry) throw refusal(entry, 'prompts/get', this.#pins)
    requireDecided(operation.origin, entry)
    return this.calls.call(operation, entry, { name: JSON.stringify(entry.original) })
  }

  async #resource(operation: Operation): Promise<Outcome> {
    const uri = requireText(operation.params, 'uri')
    const entry = await this.findResource(operation.client, uri)
    requireDecided(operation.origin, entry)
    const outcome = await this.calls.call(operation, entry, {})
    // A backend that does not support resources does not have this one either.
    if (entry.isUnlisted && isMethodNotFound(outcome))
      throw new GatehouseError('RESOURCE_NOT_FOUND', { data: { uri } })
    return outcome
  }

  /**
   * The entry behind a URI. Rejects with FORBIDDEN when it is withheld from clients, with RESOURCE_NOT_FOUND, or with
   * BACKEND_UNAVAILABLE when that cannot be known now.
   */
  async findResource(client: OperationClient, uri: string): Promise<CatalogEntry> {
    const linked = this.#linkedBackend(client, uri)
    const entry = await this.#lookup.find(client, (catalog) => catalog.resourceAt(uri, linked))
    if (entry && 'refused' in entry) throw refusal(entry, 'resources/read', this.#pins)
    if (entry) return entry
    throw (
      this.#lookup.unlisted(client, undefined, resourceKinds) ??
      new GatehouseError('RESOURCE_NOT_FOUND', { data: { uri } })
    )
  }

  async #complete(operation: Operation): Promise<Outcome> {
    const ref = operation.params.object('ref')
    const type = ref?.text('type')
    const name = ref?.text(type === 'ref/prompt' ? 'name' : 'uri')
    if (!ref || name === undefined || (type !== 'ref/prompt' && type !== 'ref/resource')) {
      throw new GatehouseError('INVALID_PARAMS', {
        detail: 'Invalid params: ref must name a prompt or a resource',
      })
    }
    const catalog = await this.view(operation.client, { waitForFresh: false })
    const entry =
      type === 'ref/prompt'
        ? catalog.prompts.get(name)
        : (catalog.templates.get(name) ?? catalog.findResource(name))
    const offered = catalog.listings.find(({ backend }) => backend === entry?.backend)?.server.capabilities
      .completions
    if (entry) requireDecided(operation.origin, entry)
    if (!entry || !offered) return resultOutcome({ completion: { values: [], total: 0, hasMore: false } })
    if (entry.check)
      await requireFittingCompletion(operation, entry.check, this.#pins.matcherFor(operation, entry))
    const changes = type === 'ref/prompt' ? { ref: ref.with({ name: JSON.stringify(entry.original) }) } : {}
    return this.calls.call(operation, entry, changes)
  }
}

function isMethodNotFound(outcome: Outcome): boolean {
  return outcome.kind === 'error' && new JsonObject(outcome.error).value('code') === rpcCode.methodNotFound
}

function listOf(catalog: Catalog, kind: ItemKind): readonly CatalogEntry[] {
  switch (kind) {
    case 'tools':
      return catalog.toolList
    case 'resources':
      return catalog.resourceList
    case 'templates':
      return catalog.templateList
    case 'prompts':
      return catalog.promptList
    default:
      return []
  }
}

function requireText(params: JsonObject, member: string): string {
  const value = params.text(member)
  if (value === undefined)
    throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${member} must be a string` })
  return value
}
