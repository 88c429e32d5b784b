/**
 * Finds what a client named in what it sees, and tells "there is no such thing" from "its backend is not there now".
 *
 * A name that is not offered at the moment is looked for once more in what the backends offered last: the call then
 * fails with BACKEND_UNAVAILABLE. A backend that has never been listed may offer any name that
 * could be its own.
 * Source: docs/specification/virtual-server.md#operational (operational.failureHandling); MCP, tools ("Error Handling").
 */
import type { ViewOptions } from './listings.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { unavailable } from '../health/unavailable.ts'
import type { OperationClient } from '../pipeline/operation.ts'
import type { Catalog } from './catalog.ts'
import { isRefusal } from './read-failure.ts'
import type { AggregatedBackend, View, Views } from './views.ts'

export interface LookupParts {
  readonly members: ReadonlyMap<string, AggregatedBackend>
  readonly views: Views
  readonly partialFailureMode: 'fail' | 'best_effort'
  /** True when backends are checked: then it is their health that says whether one is down, not a list that is stale. */
  readonly monitored: boolean
}

export class Lookup {
  readonly #parts: () => LookupParts

  constructor(parts: () => LookupParts) {
    this.#parts = parts
  }

  /**
   * What a client sees. With `fail`, rejects with BACKEND_UNAVAILABLE when any backend is down; one whose provider the
   * user has not connected is not down, but absent.
   */
  async view(client: OperationClient, { waitForFresh }: ViewOptions): Promise<Catalog> {
    const { members, views, partialFailureMode } = this.#parts()
    const skipSlow = !waitForFresh && partialFailureMode !== 'fail'
    return this.#ready(client) ?? this.#complete(await views.of(members, client, { waitForFresh, skipSlow }))
  }

  /** What is known without waiting. Throws as `view` rejects. */
  #ready(client: OperationClient): Catalog | undefined {
    const { members, views } = this.#parts()
    const view = views.ready(members, client)
    return view && this.#complete(view)
  }

  #complete(view: View): Catalog {
    const { partialFailureMode, monitored } = this.#parts()
    if (partialFailureMode === 'fail') {
      const all = monitored ? view.down : [...view.down, ...view.stale]
      const down = all.filter(({ error }) => codeOf(error) !== 'UPSTREAM_NOT_CONNECTED')
      if (down.length > 0) throw allUnavailable(down)
    }
    return view.catalog
  }

  /**
   * Looks for something that a client named; asks the backends again before it says that there is no such thing. What is
   * found may belong to a backend that requests are held back from.
   */
  async find<E>(client: OperationClient, look: (catalog: Catalog) => E | undefined): Promise<E | undefined> {
    const found = this.findReady(client, look) ?? look(await this.view(client, { waitForFresh: false }))
    if (found) return found
    const { members, views } = this.#parts()
    // Backends that do not announce changes may offer something new; asked again at most once a second.
    for (const { listings } of members.values()) listings.expireUnannounced(client)
    return look(await this.view(client, { waitForFresh: true })) ?? look(views.known(members, client))
  }

  /** What is found without waiting; undefined says nothing yet. Throws as `view` rejects. */
  findReady<E>(client: OperationClient, look: (catalog: Catalog) => E | undefined): E | undefined {
    const catalog = this.#ready(client)
    return catalog && look(catalog)
  }

  /** The own name behind what may be an alias; undefined when it is none. */
  nameOf(client: OperationClient, alias: string): Promise<string | undefined> {
    return this.find(
      client,
      ({ aliases, tools }) => aliases.names.get(alias) ?? (tools.has(alias) ? alias : undefined),
    )
  }

  /**
   * BACKEND_UNAVAILABLE when a name that was not found may belong to a backend that was never listed for this client.
   * `named` is a name of the catalog; undefined for URIs, which say nothing of their backend.
   */
  unlisted(client: OperationClient, named: string | undefined): GatehouseError | undefined {
    const { members, views } = this.#parts()
    const owners = [...members.values()].flatMap(({ backend: { name }, listings }) => {
      if (listings.peek(client) || (named !== undefined && !views.mayOwn(name, named))) return []
      return [{ name, error: listings.failureOf(client) }]
    })
    return owners.length > 0 ? allUnavailable(owners) : undefined
  }
}

function allUnavailable(down: View['down']): GatehouseError {
  const errors = down.flatMap(({ error }) => error ?? [])
  const refusals = down.filter(({ error }) => error && isRefusal(error) && !isSignInNeeded(error))
  const cause = errors.find(isSignInNeeded) ?? refusals[0]?.error ?? errors[0]
  const needsSignIn = cause !== undefined && isSignInNeeded(cause)
  return unavailable(down.map(({ name }) => name).sort(), {
    cause,
    hint: needsSignIn ? cause.message : undefined,
    reason: needsSignIn || refusals.length === 0 ? undefined : refusals.map(reasonOf).join('; '),
  })
}

function reasonOf({ name, error }: View['down'][number]): string {
  const [prefix, message] = [`backend ${name}: `, error?.message ?? '']
  return message.startsWith(prefix) ? message : prefix + message
}

/** Only the user can change this, by signing in again or by connecting the provider. */
function isSignInNeeded(error: Error): boolean {
  const code = codeOf(error)
  return code === 'UPSTREAM_TOKEN_MISSING' || code === 'UPSTREAM_NOT_CONNECTED'
}

function codeOf(error: Error | undefined): string | undefined {
  return error instanceof GatehouseError ? error.code : undefined
}
