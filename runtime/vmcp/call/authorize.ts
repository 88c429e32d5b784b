/**
 * Authorizes operations of the virtual server. Checks each operation before the operation runs, and filters lists
 * afterwards.
 *
 * Authorization runs before the rate limit, so a denied call costs nothing. Authorization also runs before every link
 * that looks up the requested item, so a denied caller cannot find out which items exist. These links are the
 * optimizer, code mode, workflows and the core. The filtered lists include workflows. A feature's surface adds the
 * feature's own tools outside this link, after a separate check.
 *
 * Each call that a script makes passes through this link with its real name and arguments. Workflow steps do not pass
 * through this link, because the workflow itself was authorized.
 *
 * A denied operation is rejected with FORBIDDEN and the action's message. Lists contain only items that the caller may
 * use.
 * Source: docs/reference/specification/virtual-server.md#authentication, authentication (incoming, 2) and endpoints
 * (execute_tool_script); ARCHITECTURE.md, "A tool call".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { AccessRequest, DecisionReport, Facts, FactsResponse, Gate, Origin } from '../../policy/index.ts'
import type { OperationClient } from '../model/session.ts'
import type { Link, Operation } from '../model/operation.ts'
import type { TaskRef } from '../model/task.ts'
import type { DecidedAccess } from './extension-methods.ts'

export interface AuthorizeOptions {
  readonly gate: Gate
  /**
   * Returns facts about the requested item. Uses the same lookup as the request itself. This function must cover every
   * source of tools, because clients cannot call tools that it reports as nonexistent.
   */
  readonly factsOf: (client: OperationClient, request: AccessRequest) => Promise<FactsResponse>
  /** Like `factsOf`, but consults only the cache. Shadow policies use this function for rejected requests. */
  readonly peekFacts?: (client: OperationClient, request: AccessRequest) => Facts | undefined
  /**
   * Returns a function that maps an item id in a list to the item's origin. `result` is the raw list result from the
   * core.
   */
  readonly originsOf?: ((result: Buffer) => ((id: string) => Origin | undefined) | undefined) | undefined
  /** Returns the request on which policies decide, which differs from the operation for methods of extensions. */
  readonly accessOf?: (operation: Operation) => DecidedAccess
  /** Receives each decision on an operation. */
  readonly onDecision?: (
    operation: Operation,
    decision: AccessDecision,
    report: DecisionReport | undefined,
  ) => void
}

/** `error` means that no decision could be made, so the operation is rejected. */
export type AccessDecision = 'allowed' | 'denied' | 'error'

export function authorize({
  gate,
  factsOf,
  peekFacts,
  originsOf,
  accessOf = ({ method, params }) => ({ method, params }),
  onDecision = () => {},
}: AuthorizeOptions): Link {
  return async function authorize(operation, next) {
    const { client, context } = operation
    const { method, params, facts } = accessOf(operation)
    const { signal } = context
    // The owner of a task may always cancel it.
    if (operation.task && method === 'tasks/cancel') return next(operation)
    const subject = operation.task ? callOfTask(operation.task) : { method, params }
    let report: DecisionReport | undefined
    try {
      await gate.check(client.caller, subject.method, subject.params, {
        signal,
        factsOf: async (request) => facts ?? factsOf(client, request),
        peekFacts: (request) => facts ?? peekFacts?.(client, request),
        decided: (made) => (report = made),
      })
    } catch (error) {
      onDecision(operation, isDenial(error) ? 'denied' : 'error', report)
      throw error
    }
    onDecision(operation, 'allowed', report)
    const origin = decidedOrigin(operation.origin, report?.request.origin)
    // The name may later resolve to a different backend. `resolveTarget` then rejects the operation.
    const outcome = await next(origin === operation.origin ? operation : { ...operation, origin })
    if (outcome.kind !== 'result') return outcome
    const originOf = originsOf?.(outcome.result)
    const result = await gate.filter(client.caller, method, outcome.result, {
      signal,
      ...(originOf ? { originOf } : {}),
    })
    return result === outcome.result ? outcome : { kind: 'result', result }
  }
}

/** Returns a function that resolves to false if policies forbid a request that an operation's client could send. */
export function permissionCheck(gate: Gate, factsOf: AuthorizeOptions['factsOf']) {
  return async function permits(operation: Operation, method: string, params: JsonObject): Promise<boolean> {
    const { client, context } = operation
    try {
      await gate.check(client.caller, method, params, {
        signal: context.signal,
        factsOf: (request) => factsOf(client, request),
      })
      return true
    } catch (error) {
      if (isDenial(error)) return false
      throw error
    }
  }
}

/** Returns a function that rejects with FORBIDDEN if policies do not permit a further request for an operation. */
export function permissionRequirement({
  gate,
  factsOf,
  onDecision = () => {},
}: Pick<AuthorizeOptions, 'gate' | 'factsOf' | 'onDecision'>) {
  return async function requirePermission(
    operation: Operation,
    method: string,
    params: JsonObject,
  ): Promise<void> {
    const { client, context } = operation
    let report: DecisionReport | undefined
    try {
      await gate.check(client.caller, method, params, {
        signal: context.signal,
        factsOf: (request) => factsOf(client, request),
        decided: (made) => (report = made),
      })
    } catch (error) {
      onDecision(operation, isDenial(error) ? 'denied' : 'error', report)
      throw error
    }
  }
}

/**
 * Returns the origin on which the decision was based. Throws BACKEND_UNAVAILABLE if webhooks and policies saw different
 * origins.
 */
function decidedOrigin(asked: Origin | undefined, decided: Origin | undefined): Origin | undefined {
  if (!asked || !decided) return decided ?? asked
  if (asked.backend === decided.backend && asked.original === decided.original) return decided
  throw new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: 'the target of the requested name changed during the request; try again',
  })
}

/** Returns the call that policies decide on for a request about a task. The arguments are no longer available. */
function callOfTask({ tool }: TaskRef): { readonly method: string; readonly params: JsonObject } {
  const params = new JsonObject(Buffer.from(JSON.stringify({ name: tool })))
  return { method: 'tools/call', params }
}

function isDenial(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'FORBIDDEN'
}
