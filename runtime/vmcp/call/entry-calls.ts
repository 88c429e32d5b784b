/**
 * Takes an operation to the backend of a catalog entry.
 *
 * Does not look for entries and does not ask whether the caller may use one: that is done before, in core.ts and guards.ts.
 * Source: docs/specification/virtual-server.md (what the service does, operational.failureHandling).
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type ErrorCode, GatehouseError } from '../../../schemas/index.ts'
import { argumentHeaders, type Changes, type JsonObject, type ResultPassage } from '../../mcp/index.ts'
import type { Backend } from '../backends/backend.ts'
import { backendIdentity } from '../backends/backend-identity.ts'
import type { Relay, Request } from '../backends/connection.ts'
import type { ResponseLimit } from '../backends/transport/http.ts'
import { heldTool } from '../catalog/facts.ts'
import type { LookupParts } from '../catalog/lookup.ts'
import type { ResourceLinks } from '../catalog/resource-links.ts'
import type { CatalogEntry, ToolEntry } from '../model/catalog/entries.ts'
import type { Guard } from '../features/guardrails/index.ts'
import { unavailable } from '../model/unavailable.ts'
import { withoutOwnMeta } from '../features/quotas/own-meta.ts'
import { type QuotaParts, Spending } from '../features/quotas/spending.ts'
import { type Ask, type AskReply, invalidRequestState, type Operation, type Outcome } from '../model/operation.ts'
import { type PinParts, refusal, unfitArguments } from '../features/pinning/refusal.ts'

export interface CallParts extends LookupParts {
  /** Looks into arguments and results; undefined: nobody does. */
  readonly guard?: Guard | undefined
  /** The only backend of the configuration; undefined when there are several. */
  readonly onlyBackend: string | undefined
  /** Resource URIs that backends returned in results. */
  readonly links: ResourceLinks
}

export interface EntryCallOptions {
  /** The least time that the backend has. */
  readonly timeoutMs?: number | undefined
  /** The backend's server requests are relayed during the call, in both eras of clients; they never end it. */
  readonly bridges?: boolean
  /** The call belongs to another one of the client, which does not get its result. */
  readonly isStep?: boolean
}

interface SendOptions extends EntryCallOptions {
  readonly limit?: ResponseLimit | undefined
  /** The result is looked into: it comes whole. */
  readonly isRead?: boolean
}

export class EntryCalls {
  readonly #parts: () => CallParts
  readonly #pins: PinParts
  readonly #spending: Spending

  constructor(parts: () => CallParts, pins: PinParts, quotas: QuotaParts) {
    this.#parts = parts
    this.#pins = pins
    this.#spending = new Spending(quotas)
  }

  /** Calls what an entry leads to; also for tools that clients do not see. */
  call(
    operation: Operation,
    entry: CatalogEntry,
    changes: Changes,
    options: EntryCallOptions = {},
  ): Promise<Outcome> {
    const { guard, onlyBackend, links } = this.#parts()
    const calling = this.#guarded(guard, operation, entry, changes, options)
    if (onlyBackend !== undefined) return calling
    // Record the links that the client receives.
    return calling.then((outcome) => {
      links.remember(operation, entry.backend, outcome)
      return outcome
    })
  }

  #guarded(
    guard: Guard | undefined,
    operation: Operation,
    entry: CatalogEntry,
    changes: Changes,
    options: EntryCallOptions,
  ): Promise<Outcome> {
    if (!guard) return this.#send(operation, entry, changes, options)
    const called = options.isStep ? { ...operation, forProgram: true } : operation
    return guard.around(called, entry, (guarded, limit) =>
      this.#send(guarded, entry, changes, { ...options, limit, isRead: true }),
    )
  }

  async #send(
    operation: Operation,
    entry: CatalogEntry,
    changes: Changes,
    { timeoutMs = 0, bridges = false, isStep = false, limit, isRead = false }: SendOptions,
  ): Promise<Outcome> {
    const { client, method, params } = operation
    operation.routed?.(this.#backend(entry.backend).name)
    const unfit =
      entry.check && (await unfitArguments(operation, entry.check, this.#pins.matcherFor(operation, entry)))
    if (unfit) return unfit
    // It may have gone while the arguments were checked.
    const backend = this.#backend(entry.backend)
    const mirrored = entry.mirrored ?? []
    const request: Request = {
      method,
      params,
      changes: { ...(sameAs(params, changes) ? {} : changes), ...withoutForeignState(operation, backend) },
      sender: { caller: client.caller, headers: client.headers },
      capabilities: client.abilities.raw,
      signal: operation.lazySignal ?? operation.signal,
      timeoutMs: Math.max(timeoutMs, backend.settings.timeoutMs),
      limit,
      relay: new OperationRelay(operation, {
        bridges: bridges || client.era === 'session',
        isRead,
        watched: (passage) => this.#watched(operation, backend.name, passage),
      }),
      headers: mirrored.length > 0 ? argumentHeaders(mirrored, params) : undefined,
      repeatable: entry.repeatable,
    }
    let outcome: Outcome
    try {
      if (method === 'tools/call' && this.#spending.isOn)
        return withAskingBackend(
          backend,
          await this.#spending.spend(operation, entry, { tells: !isStep }, (delivery) =>
            backend.call(client, { ...request, delivery }),
          ),
        )
      outcome = await backend.call(client, request)
    } catch (error) {
      throw ofBackendAlone(backend.name, error)
    }
    return withoutOwnMeta(withAskingBackend(backend, outcome))
  }

  /**
   * Calls a tool that was looked up a while ago, if pinning still allows it: a tool may have changed since its workflow
   * began. Rejects with FORBIDDEN when it is refused, with INVALID_PARAMS when it is gone.
   */
  async callHeld(operation: Operation, held: ToolEntry, options: EntryCallOptions): Promise<Outcome> {
    const { members, views } = this.#parts()
    const step = { ...options, isStep: true }
    if (!views.awaitsAnnounced) return this.call(operation, held, {}, step)
    const { client } = operation
    for (const { listings } of members.values()) listings.changes.flush(client.session?.id)
    const view = views.ready(members, client) ?? (await views.of(members, client, { waitForFresh: false }))
    const entry = heldTool(view.catalog, held)
    if ('refused' in entry) throw refusal(entry, 'tools/call', this.#pins)
    return this.call(operation, entry, {}, step)
  }

  /** Records the links of a large result while it is streamed. */
  #watched(
    operation: Operation,
    backend: string,
    passage: ResultPassage | undefined,
  ): ResultPassage | undefined {
    const { onlyBackend, links } = this.#parts()
    return onlyBackend === undefined ? links.watched(passage, operation, backend) : passage
  }

  #backend(name: string): Backend {
    const { members, leftOut } = this.#parts()
    const member = members.get(name)
    if (!member?.available()) throw unavailable([name], { leftOut: leftOut.filter((one) => one === name) })
    return member.backend
  }
}

/**
 * Removes state and answers that must not reach the backend. Throws INVALID_PARAMS when they are for another backend.
 * Members that belong to no backend are removed, because the client invented them.
 */
function withoutForeignState({ params, stateFor }: Operation, { settings }: Backend): Changes {
  const carried = stateMembers.filter((name) => params.raw(name) !== undefined)
  if (carried.length === 0 && stateFor === undefined) return {}
  if (stateFor === undefined) return Object.fromEntries(carried.map((name) => [name, undefined]))
  if (stateFor !== backendIdentity(settings)) throw invalidRequestState()
  return {}
}

const stateMembers = ['requestState', 'inputResponses'] as const

/** Adds the identity of the backend to an outcome that asks for input. */
function withAskingBackend({ settings }: Backend, outcome: Outcome): Outcome {
  return outcome.kind === 'input' ? { ...outcome, backend: backendIdentity(settings) } : outcome
}

const providerErrors: Readonly<Record<string, ErrorCode>> = {
  UPSTREAM_TOKEN_MISSING: 'BACKEND_AUTH_FAILED',
  UPSTREAM_NOT_CONNECTED: 'BACKEND_AUTH_FAILED',
  AUTH_UNAVAILABLE: 'BACKEND_AUTH_UNAVAILABLE',
}

/**
 * An upstream provider that is silent, or has ended the user's login, concerns its own backend: the caller, who is
 * signed in here, is not refused, and no breaker counts it.
 */
function ofBackendAlone(backend: string, error: unknown): unknown {
  const code = error instanceof GatehouseError ? providerErrors[error.code] : undefined
  if (!(error instanceof GatehouseError) || code === undefined) return error
  return new GatehouseError(code, {
    detail: `authentication failed for backend ${backend}: ${error.message}`,
    data: { backend },
    cause: error,
  })
}

/** True when the changes would not change anything: then the params travel as they came. */
function sameAs(params: JsonObject, changes: Changes): boolean {
  for (const name in changes) {
    const value = changes[name]
    if (value === undefined || params.raw(name)?.toString() !== value.toString()) return false
  }
  return true
}

interface RelayOptions {
  readonly bridges: boolean
  readonly isRead: boolean
  readonly watched: (passage: ResultPassage | undefined) => ResultPassage | undefined
}

/** The client's side of an operation, as a backend connection uses it. */
class OperationRelay implements Relay {
  readonly bridges: boolean
  readonly #operation: Operation
  readonly #options: RelayOptions
  /**
   * Runs a function in the asynchronous context of the operation. Events arrive in the context of whichever request opened
   * the connection, and would be audited and traced as part of that request.
   */
  readonly #inContext = AsyncLocalStorage.snapshot()

  constructor(operation: Operation, options: RelayOptions) {
    this.bridges = options.bridges
    this.#operation = operation
    this.#options = options
  }

  get progressToken(): string | undefined {
    return this.#operation.progressToken
  }

  get logLevel(): string | undefined {
    return this.#operation.logLevel
  }

  progress(params: Buffer): void {
    this.#inContext(() => this.#operation.progress(params))
  }

  log(params: Buffer): void {
    this.#inContext(() => this.#operation.log(params))
  }

  ask(request: Ask, signal: AbortSignal): Promise<AskReply> {
    return this.#inContext(() => this.#operation.ask(request, signal))
  }

  passage(): ResultPassage | undefined {
    const { isRead, watched } = this.#options
    return isRead ? undefined : watched(this.#operation.passage?.())
  }
}
