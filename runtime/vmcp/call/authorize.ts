/**
 * Authorization in the pipeline of the virtual server: the check before an operation, the filter of lists after it.
 *
 * Stands before the rate limit, so that a denied call costs nothing, and before everything that looks up what was named
 * (optimizer, code mode, workflows, the core), so that a denied caller cannot tell what exists; and outside of whatever
 * adds items to lists, so that these are checked too. Inner calls of a script pass through it again, one by one, under their real names and with their real
 * arguments; the steps of a workflow do not: the workflow itself was permitted.
 *
 * A refusal is a FORBIDDEN error with the text of its kind; lists are answered with what the caller may use.
 * Source: docs/specification/virtual-server.md#authentication, authentication (incoming, 2) and endpoints (execute_tool_script); ARCHITECTURE.md, "A tool call".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { AccessRequest, DecisionReport, Facts, FactsResponse, Gate, Origin } from '../../policy/index.ts'
import type { OperationClient } from '../model/session.ts'
import type { Link, Operation } from '../model/operation.ts'

export interface AuthorizeOptions {
  readonly gate: Gate
  /**
   * What is known of something that this client could use, looked up as the request itself would. Whatever offers tools
   * of its own must be asked here too, because a tool that is said not to exist cannot be called.
   */
  readonly factsOf: (client: OperationClient, request: AccessRequest) => Promise<FactsResponse>
  /** The same of what is known without asking any backend, for shadow policies about a request that is refused. */
  readonly peekFacts?: (client: OperationClient, request: AccessRequest) => Facts | undefined
  /** Where the items of a list come from, by the raw result that the core made. */
  readonly originsOf?: ((result: Buffer) => ((id: string) => Origin | undefined) | undefined) | undefined
  /** Called with each decision about a request. */
  readonly decided?: (
    operation: Operation,
    decision: AccessDecision,
    report: DecisionReport | undefined,
  ) => void
}

/** `error`: the decision could not be made, so that the request is refused. */
export type AccessDecision = 'allowed' | 'denied' | 'error'

export function authorize({
  gate,
  factsOf,
  peekFacts,
  originsOf,
  decided = () => {},
}: AuthorizeOptions): Link {
  return async function authorize(operation, next) {
    const { method, params, client, context } = operation
    const { signal } = context
    let report: DecisionReport | undefined
    try {
      await gate.check(client.caller, method, params, {
        signal,
        factsOf: (request) => factsOf(client, request),
        peekFacts: (request) => peekFacts?.(client, request),
        decided: (made) => (report = made),
      })
    } catch (error) {
      decided(operation, isDenial(error) ? 'denied' : 'error', report)
      throw error
    }
    decided(operation, 'allowed', report)
    const origin = decidedOrigin(operation.origin, report?.request.origin)
    // The name may resolve to another backend later; `reject` then refuses the operation.
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

/** Throws BACKEND_UNAVAILABLE when webhooks were asked about another thing than policies. */
function decidedOrigin(asked: Origin | undefined, decided: Origin | undefined): Origin | undefined {
  if (!asked || !decided) return decided ?? asked
  if (asked.backend === decided.backend && asked.original === decided.original) return decided
  throw new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: 'what was asked for has moved while it was looked up; try again',
  })
}

function isDenial(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'FORBIDDEN'
}
