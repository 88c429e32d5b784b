/**
 * Implements the last link of the chain. Serves lists from the catalog, runs workflows, and sends everything else to a
 * backend. Converts backend failures to the form that the method requires.
 * Source: docs/reference/specification/virtual-server.md (what the service does, operational.failureHandling).
 */
import { type ErrorCode, GatehouseError } from '../../../schemas/index.ts'
import { argumentHeaders, JsonObject, rpcCode, withTasks } from '../../mcp/index.ts'
import { keepScope } from '../../observe/index.ts'
import { isBackendError } from '../backends/backend-errors.ts'
import { backendIdentity } from '../backends/settings.ts'
import type { Backend } from '../backends/backend.ts'
import { withoutOwnMeta } from '../features/quotas/own-meta.ts'
import { isHeaderMismatch, type Outcome, toolErrorOutcome } from '../model/outcome.ts'
import { unavailableError } from '../model/unavailable.ts'
import {
  invalidRequestStateError,
  type Link,
  type Operation,
  type Perform,
  type Target,
} from '../model/operation.ts'
import type { CallParts, Core } from './core.ts'

/**
 * Returns the link that converts a failed tool call to a result that a model can read. Reading an unlisted resource
 * fails with RESOURCE_NOT_FOUND if the resource's backend has no resources.
 *
 * This link also repeats a tool call once if the backend rejects the mirrored headers (HEADER_MISMATCH). The tool may
 * have changed since it was listed, and the backend has not executed the rejected call.
 */
export function readableErrors(core: Pick<Core, 'retarget'>): Link {
  return async function readableErrors(operation, next) {
    const { method, target } = operation
    if (!target || target.run) return next(operation)
    if (method !== 'tools/call')
      return target.entry.isUnlisted ? requireResource(operation, next) : next(operation)
    try {
      const outcome = await next(operation)
      return isHeaderMismatch(outcome) ? await repeat(operation, target, next) : outcome
    } catch (error) {
      if (!isBackendError(error) || operation.context.signal.aborted) throw error
      if (error.code === 'BACKEND_SIGN_IN_REQUIRED') throw error
      return toolErrorOutcome(error.message)
    }
  }

  async function repeat(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const retargeted = await core.retarget(operation, target)
    const outcome = retargeted && (await next({ ...operation, target: retargeted }))
    if (outcome && !isHeaderMismatch(outcome)) return outcome
    const { backend } = target.entry
    throw new GatehouseError('BACKEND_PROTOCOL', {
      detail: `backend ${backend}: the headers of the call do not match its arguments`,
      data: { backend },
    })
  }
}

async function requireResource(operation: Operation, next: Perform): Promise<Outcome> {
  const outcome = await next(operation)
  if (outcome.kind === 'error' && new JsonObject(outcome.error).value('code') === rpcCode.methodNotFound)
    throw new GatehouseError('RESOURCE_NOT_FOUND', { data: { uri: operation.params.text('uri') } })
  return outcome
}

/**
 * Reports the selected backend if the operation's context requests a report. Then also rejects with BACKEND_UNAVAILABLE
 * if the backend is not available, so the links between this link and `send` do not run.
 */
export function route(core: Pick<Core, 'parts'>): Link {
  return function route(operation, next) {
    const { target, context } = operation
    if (target && !target.run) context.onRouted?.(availableBackend(core.parts, target).name)
    return next(operation)
  }
}

/**
 * Rejects an operation if another backend issued the operation's `requestState`, or if the backend was removed while
 * the arguments were being checked. This link comes before the quota, so a rejected operation is not counted.
 */
export function checkState(core: Pick<Core, 'parts'>): Link {
  return function checkState(operation, next) {
    const { target } = operation
    if (target && !target.run) requireIssuer(operation, availableBackend(core.parts, target))
    return next(operation)
  }
}

export function send(core: Core): Perform {
  return async function send(operation) {
    const { target, client, context, method, params, stateFor, tasks } = operation
    if (!target) return core.answer(operation)
    if (target.run) return target.run(operation)
    const { entry, timeoutMs = 0, bridges = false, needsWholeResult = false } = target
    const { onlyBackend, links } = core.parts
    if (stateFor !== undefined) requireIssuer(operation, availableBackend(core.parts, target))
    // The backend may have been removed while the quota was being reserved.
    const backend = core.parts.members.get(entry.backend)?.backend
    if (!backend) throw missingError(core.parts, entry.backend)
    const { name, settings } = backend
    const { mirrored = [] } = entry
    // Event handlers run in the context of the request that opened the connection. Without the scope of this request,
    // audit and traces would attribute the events to that other request.
    const inScope = keepScope()
    try {
      const outcome = await backend.call(client, {
        method,
        params,
        changes: target.changes,
        hasOwnState: stateFor !== undefined,
        sender: { caller: client.caller, headers: client.headers },
        capabilities: tasks === undefined ? client.abilities.raw : withTasks(client.abilities.raw),
        acceptsTask: tasks === 'accepted',
        signal: context.lazySignal ?? context.signal,
        timeoutMs: Math.max(timeoutMs, settings.timeoutMs),
        limit: target.limit,
        relay: {
          bridges: bridges || client.era === 'session',
          progressToken: context.progressToken,
          logLevel: context.logLevel,
          progress: (progress) => inScope(() => context.progress(progress)),
          log: (message) => inScope(() => context.log(message)),
          ask: (request, signal) => inScope(() => context.ask(request, signal)),
          streamResult() {
            const passage = needsWholeResult ? undefined : context.streamResult?.()
            return onlyBackend === undefined ? links.recordWhileStreaming(passage, operation, name) : passage
          },
        },
        headers: mirrored.length > 0 ? argumentHeaders(mirrored, params) : undefined,
        repeatable: entry.repeatable,
        delivery: target.delivery,
      })
      if (outcome.kind === 'input') return { ...outcome, backend: backendIdentity(settings) }
      return await withoutOwnMeta(outcome, target.delivery)
    } catch (error) {
      throw toBackendError(name, error)
    }
  }
}

function availableBackend(parts: CallParts, { entry: { backend: name } }: Target): Backend {
  const backend = parts.members.get(name)?.backend
  if (!backend) throw missingError(parts, name)
  if (!backend.isAvailable) throw backend.unavailableError
  return backend
}

/** Returns the error for a backend that was removed, or that is left out because its settings are invalid. */
function missingError({ leftOut }: CallParts, name: string): GatehouseError {
  return unavailableError([name], { leftOut: leftOut.filter((one) => one === name) })
}

/** Throws INVALID_PARAMS if an operation's `requestState` and `inputResponses` belong to another backend. */
function requireIssuer({ stateFor }: Operation, { settings }: Backend): void {
  if (stateFor !== undefined && stateFor !== backendIdentity(settings)) throw invalidRequestStateError()
}

const providerErrors: Readonly<Record<string, ErrorCode>> = {
  UPSTREAM_TOKEN_MISSING: 'BACKEND_AUTH_FAILED',
  UPSTREAM_NOT_CONNECTED: 'BACKEND_AUTH_FAILED',
  USER_REQUIRED: 'BACKEND_AUTH_FAILED',
  AUTH_UNAVAILABLE: 'BACKEND_AUTH_UNAVAILABLE',
}

/**
 * Converts an upstream provider's failure to an error that affects only that provider's backend. The caller stays
 * signed in to Gatehouse, and no circuit breaker counts the failure.
 */
function toBackendError(backend: string, error: unknown): unknown {
  const code = error instanceof GatehouseError ? providerErrors[error.code] : undefined
  if (!(error instanceof GatehouseError) || code === undefined) return error
  return new GatehouseError(code, {
    detail: `authentication failed for backend ${backend}: ${error.message}`,
    data: { backend },
    cause: error,
  })
}
