/**
 * The end of the chain: answers lists from the catalog, runs workflows, and sends everything else to its backend.
 * Source: docs/reference/specification/virtual-server.md (what the service does, operational.failureHandling).
 */
import { type ErrorCode, GatehouseError } from '../../../schemas/index.ts'
import { argumentHeaders, type Changes } from '../../mcp/index.ts'
import { backendIdentity } from '../backends/backend-identity.ts'
import type { Backend } from '../backends/backend.ts'
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
export function route(core: Pick<Core, 'parts'>): Link {
  return function route(operation, next) {
    const { target, context } = operation
    if (target && !target.run) context.routed?.(backendOf(core.parts, target).name)
    return next(operation)
  }
}

/**
 * Rejects an operation whose `requestState` another backend issued, or whose backend was removed while the arguments
 * were checked. Comes before the quota, so that such an operation is not counted.
 */
export function checkState(core: Pick<Core, 'parts'>): Link {
  return function checkState(operation, next) {
    const { target } = operation
    if (target && !target.run) withoutForeignState(operation, backendOf(core.parts, target))
    return next(operation)
  }
}

export function send(core: Core): Perform {
  return async function send(operation) {
    const { target, client, context, method, params } = operation
    if (!target) return core.answer(operation)
    if (target.run) return target.run(operation)
    const { entry, timeoutMs = 0, bridges = false } = target
    const { onlyBackend, links } = core.parts
    // The backend may have been removed while the quota was reserved.
    const backend = backendOf(core.parts, target)
    const { name, settings } = backend
    const { mirrored = [] } = entry
    try {
      const outcome = await backend.call(client, {
        method,
        params,
        changes: { ...target.changes, ...withoutForeignState(operation, backend) },
        sender: { caller: client.caller, headers: client.headers },
        capabilities: client.abilities.raw,
        signal: context.lazySignal ?? context.signal,
        timeoutMs: Math.max(timeoutMs, settings.timeoutMs),
        limit: target.limit,
        relay: new OperationRelay(context, {
          bridges: bridges || client.era === 'session',
          needsWholeResult: target.needsWholeResult ?? false,
          watched: (passage) =>
            onlyBackend === undefined ? links.watched(passage, operation, name) : passage,
        }),
        headers: mirrored.length > 0 ? argumentHeaders(mirrored, params) : undefined,
        repeatable: entry.repeatable,
        delivery: target.delivery,
      })
      return outcome.kind === 'input' ? { ...outcome, backend: backendIdentity(settings) } : outcome
    } catch (error) {
      throw ofBackendAlone(name, error)
    }
  }
}

function backendOf({ members, leftOut }: CallParts, { entry: { backend: name } }: Target): Backend {
  const member = members.get(name)
  if (!member?.available()) throw unavailable([name], { leftOut: leftOut.filter((one) => one === name) })
  return member.backend
}

/**
 * Removes `requestState` and `inputResponses` that no backend issued, because the client invented them. Throws
 * INVALID_PARAMS when another backend issued them.
 */
function withoutForeignState({ params, stateFor }: Operation, { settings }: Backend): Changes {
  const changes: Record<string, undefined> = {}
  for (const name of ['requestState', 'inputResponses']) {
    if (stateFor === undefined && params.raw(name) !== undefined) changes[name] = undefined
  }
  if (stateFor !== undefined && stateFor !== backendIdentity(settings)) throw invalidRequestState()
  return changes
}

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
