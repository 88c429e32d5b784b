/**
 * Finds the target of a client's request. Distinguishes an unknown name from an unavailable backend.
 *
 * A name that is not offered is looked up again in the backends' most recent listings. If a listing contains the name,
 * the call fails with BACKEND_UNAVAILABLE. A backend that was never listed may offer any name that fits its naming
 * scheme.
 * Source: docs/reference/specification/virtual-server.md#operational (operational.failureHandling); MCP, tools ("Error
 * Handling").
 */
import type { ViewOptions } from './listings.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { unavailableError } from '../model/unavailable.ts'
import type { OperationClient } from '../model/session.ts'
import type { Catalog } from './catalog.ts'
import { listMethod, ListsFailed } from './lists/list-defects.ts'
import type { ItemKind } from '../model/catalog/entries.ts'
import { isRefusal } from './read-failure.ts'
import type { AggregatedBackend, View, Views } from './views.ts'

/** Minimum time between list reads for names that were not found. */
const minPauseMs = 1_000

export interface LookupParts {
  readonly members: ReadonlyMap<string, AggregatedBackend>
  readonly views: Views
  /** Names of the backends that are left out because their settings are invalid. These backends are treated as down. */
  readonly leftOut: readonly string[]
  readonly partialFailureMode: 'fail' | 'best_effort'
  /** True if backends are monitored. A backend's health, not a stale list, then decides whether the backend is down. */
  readonly monitored: boolean
}

export class Lookup {
  readonly #owner: { readonly parts: LookupParts }

  constructor(owner: { readonly parts: LookupParts }) {
    this.#owner = owner
  }

  /**
   * Returns the catalog that a client sees. With `fail`, rejects with BACKEND_UNAVAILABLE when any backend is down. A
   * backend counts as absent, not down, until the user connects the backend's provider. If one of a backend's lists has
   * failed, only requests for that `list` are affected.
   */
  async view(
    client: OperationClient,
    { waitForFresh, list }: ViewOptions & { readonly list?: ItemKind | undefined },
  ): Promise<Catalog> {
    const { members, views, partialFailureMode } = this.#owner.parts
    const skipSlow = !waitForFresh && partialFailureMode !== 'fail'
    const view =
      views.ready(members, client) ?? (await views.query(members, client, { waitForFresh, skipSlow }))
    if (partialFailureMode === 'fail') this.#requireAll(view, list)
    return view.catalog
  }

  /** Throws BACKEND_UNAVAILABLE if a backend, or a backend's `list`, is missing from a view. */
  #requireAll(view: View, list: ItemKind | undefined): void {
    const { monitored, leftOut } = this.#owner.parts
    const all = monitored ? view.down : [...view.down, ...view.stale]
    const down = all.filter(({ error }) => !hidingCodes.has(codeOf(error)) && isMissing(error, list))
    const missing = list === undefined ? [] : missingList(view.catalog, list, { monitored })
    // An excluded backend is unavailable for every request, so the error contains no list.
    if (leftOut.length > 0) throw allUnavailable([...down, ...missing], { leftOut })
    if (down.length + missing.length > 0)
      throw allUnavailable([...down, ...missing], { leftOut, list: list && listMethod[list] })
  }

  /**
   * Looks up a target. Rereads the lists before reporting the target as unknown. The result may be a target whose
   * backend is currently unavailable.
   */
  async find<E>(
    client: OperationClient,
    findEntry: (catalog: Catalog) => E | undefined,
  ): Promise<E | undefined> {
    const { members, views, partialFailureMode } = this.#owner.parts
    // With pinning, an item may have changed since it was approved.
    if (views.awaitsAnnounced)
      for (const { listings } of members.values()) listings.changes.flush(client.session?.id)
    const ready = views.ready(members, client)
    if (ready && partialFailureMode === 'fail') this.#requireAll(ready, undefined)
    const found =
      (ready && findEntry(ready.catalog)) ?? findEntry(await this.view(client, { waitForFresh: false }))
    if (found) return found
    // New items may exist on backends that do not announce changes or that have pending changes. The lists of such
    // backends are reread once a second at most.
    for (const { listings } of members.values()) {
      listings.expireUnannounced(client)
      listings.changes.flush(client.session?.id, minPauseMs)
    }
    return (
      findEntry(await this.view(client, { waitForFresh: true })) ??
      findEntry(views.lastKnown(members, client))
    )
  }

  /** Returns the tool's own name for an alias, or undefined if the name is not an alias. */
  nameOf(client: OperationClient, alias: string): Promise<string | undefined> {
    return this.find(
      client,
      ({ aliases, tools }) => aliases.nameByAlias.get(alias) ?? (tools.has(alias) ? alias : undefined),
    )
  }

  /**
   * Returns BACKEND_UNAVAILABLE if a name that was not found may belong to an unavailable backend. The backend may be
   * excluded, or this client may never have been able to read the backend's lists of these kinds. `named` is a catalog
   * name. The name is undefined for URIs, because a URI does not identify a backend.
   */
  errorForUnlisted(
    client: OperationClient,
    named: string | undefined,
    kinds: readonly ItemKind[],
  ): GatehouseError | undefined {
    const { members, views, leftOut } = this.#owner.parts
    const mayOwn = (name: string) => named === undefined || views.mayOwn(name, named)
    const owners = [...members.values()].flatMap(({ backend: { name, signInError }, listings }) => {
      if (!mayOwn(name)) return []
      const listing = listings.peek(client)
      const failed = listing?.defects?.find(({ kind, state }) => state === 'failed' && kinds.includes(kind))
      if (listing && !failed) return []
      return [{ name, error: failed?.error ?? signInError ?? listings.failureOf(client) }]
    })
    const unusable = leftOut.filter(mayOwn)
    return owners.length + unusable.length > 0 ? allUnavailable(owners, { leftOut: unusable }) : undefined
  }
}

/**
 * True if a backend's error affects a request. `list` is undefined if the request does not read a list. A ListsFailed
 * error affects only requests for one of the failed lists.
 */
function isMissing(error: Error | undefined, list: ItemKind | undefined): boolean {
  return !(error instanceof ListsFailed) || (list !== undefined && error.kinds.includes(list))
}

/** Returns the backends for which `list` could not be read. */
function missingList(
  { listings }: Catalog,
  list: ItemKind,
  { monitored }: { readonly monitored: boolean },
): View['down'] {
  return listings.flatMap(({ backend: name, defects = [] }) => {
    const found = defects.find(
      ({ kind, state }) => kind === list && (state === 'failed' || (state === 'stale' && !monitored)),
    )
    return found ? [{ name, error: found.error }] : []
  })
}

function allUnavailable(
  down: View['down'],
  { leftOut, list }: { readonly leftOut: readonly string[]; readonly list?: string | undefined },
): GatehouseError {
  const errors = down.flatMap(({ error }) => error ?? [])
  const refusals = down.filter(({ error }) => error && isRefusal(error) && !isSignInNeeded(error))
  const cause = errors.find(isSignInNeeded) ?? refusals[0]?.error ?? errors[0]
  const needsSignIn = cause !== undefined && isSignInNeeded(cause)
  return unavailableError([...down.map(({ name }) => name), ...leftOut].sort(), {
    cause,
    list,
    leftOut,
    hint: needsSignIn ? cause.message : undefined,
    reason: needsSignIn || refusals.length === 0 ? undefined : refusals.map(reasonOf).join('; '),
  })
}

function reasonOf({ name, error }: View['down'][number]): string {
  const [prefix, message] = [`backend ${name}: `, error?.message ?? '']
  return message.startsWith(prefix) ? message : prefix + message
}

/** Codes of errors that hide a backend from the caller, regardless of the failure mode. */
const hidingCodes: ReadonlySet<string | undefined> = new Set([
  'BACKEND_SIGN_IN_REQUIRED',
  'UPSTREAM_NOT_CONNECTED',
  'USER_REQUIRED',
])

/** True if only the user can fix the error, by signing in again or connecting the provider. */
function isSignInNeeded(error: Error): boolean {
  const code = codeOf(error)
  return code === 'UPSTREAM_TOKEN_MISSING' || code === 'UPSTREAM_NOT_CONNECTED'
}

function codeOf(error: Error | undefined): string | undefined {
  return error instanceof GatehouseError ? error.code : undefined
}
