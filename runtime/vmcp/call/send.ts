/**
 * The end of the chain: answers lists from the catalog, runs workflows, and sends everything else to its backend.
 * Source: docs/specification/virtual-server.md (what the service does, operational.failureHandling).
 */
import { type ErrorCode, GatehouseError } from '../../../schemas/index.ts'
import { argumentHeaders, type Changes, type JsonObject } from '../../mcp/index.ts'
import { backendIdentity } from '../backends/backend-identity.ts'
import type { Backend } from '../backends/backend.ts'
import type { Request } from '../backends/connection.ts'
import { unavailable } from '../model/unavailable.ts'
import {
  invalidRequestState,
  type Link,
  type Operation,
  type Perform,
  type Target,
} from '../model/operation.ts'
import type { CallParts, Core } from './core.ts'
import { OperationRelay } from './relay.ts'

/** Reports the selected backend, or rejects with BACKEND_UNAVAILABLE when it is not available. */
export function route(parts: () => CallParts): Link {
  return function route(operation, next) {
    const { target, context } = operation
    if (target && !target.run) context.routed?.(backendOf(parts(), target).name)
    return next(operation)
  }
}

/**
 * Rejects an operation whose `requestState` another backend issued, or whose backend was removed while the arguments
 * were checked. Comes before the quota, so that such an operation is not counted.
 */
export function checkState(parts: () => CallParts): Link {
  return function checkState(operation, next) {
    const { target } = operation
    if (target && !target.run) withoutForeignState(operation, backendOf(parts(), target))
    return next(operation)
  }
}

export function send(core: Core): Perform {
  return async function send(operation) {
    const { target } = operation
    if (!target) return core.answer(operation)
    if (target.run) return target.run(operation)
    const parts = core.parts
    // The backend may have been removed while the quota was reserved.
    const backend = backendOf(parts, target)
    try {
      const outcome = await backend.call(operation.client, requestOf(operation, target, backend, parts))
      return outcome.kind === 'input' ? { ...outcome, backend: backendIdentity(backend.settings) } : outcome
    } catch (error) {
      throw ofBackendAlone(backend.name, error)
    }
  }
}

function backendOf({ members, leftOut }: CallParts, { entry: { backend: name } }: Target): Backend {
  const member = members.get(name)
  if (!member?.available()) throw unavailable([name], { leftOut: leftOut.filter((one) => one === name) })
  return member.backend
}

function requestOf(
  operation: Operation,
  { entry, changes, timeoutMs = 0, bridges = false, limit, needsWholeResult = false, delivery }: Target,
  backend: Backend,
  { onlyBackend, links }: CallParts,
): Request {
  const { client, method, params, context } = operation
  const { mirrored = [] } = entry
  return {
    method,
    params,
    changes: { ...(isUnchanged(params, changes) ? {} : changes), ...withoutForeignState(operation, backend) },
    sender: { caller: client.caller, headers: client.headers },
    capabilities: client.abilities.raw,
    signal: context.lazySignal ?? context.signal,
    timeoutMs: Math.max(timeoutMs, backend.settings.timeoutMs),
    limit,
    relay: new OperationRelay(context, {
      bridges: bridges || client.era === 'session',
      needsWholeResult,
      watched: (passage) =>
        onlyBackend === undefined ? links.watched(passage, operation, backend.name) : passage,
    }),
    headers: mirrored.length > 0 ? argumentHeaders(mirrored, params) : undefined,
    repeatable: entry.repeatable,
    delivery,
  }
}

/**
 * Removes `requestState` and `inputResponses` that no backend issued, because the client invented them. Throws
 * INVALID_PARAMS when another backend issued them.
 */
function withoutForeignState({ params, stateFor }: Operation, { settings }: Backend): Changes {
  const carried = stateMembers.filter((name) => params.raw(name) !== undefined)
  if (carried.length === 0 && stateFor === undefined) return {}
  if (stateFor === undefined) return Object.fromEntries(carried.map((name) => [name, undefined]))
  if (stateFor !== backendIdentity(settings)) throw invalidRequestState()
  return {}
}

const stateMembers = ['requestState', 'inputResponses'] as const

const providerErrors: Readonly<Record<string, ErrorCode>> = {
  UPSTREAM_TOKEN_MISSING: 'BACKEND_AUTH_FAILED',
  UPSTREAM_NOT_CONNECTED: 'BACKEND_AUTH_FAILED',
  AUTH_UNAVAILABLE: 'BACKEND_AUTH_UNAVAILABLE',
}

/**
 * Converts a failure of an upstream provider to an error of its backend alone. The caller stays signed in to Gatehouse,
 * and no circuit breaker counts the failure.
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

/** True when the params can be sent as they arrived. */
function isUnchanged(params: JsonObject, changes: Changes): boolean {
  for (const name in changes) {
    const value = changes[name]
    if (value === undefined || params.raw(name)?.toString() !== value.toString()) return false
  }
  return true
}
