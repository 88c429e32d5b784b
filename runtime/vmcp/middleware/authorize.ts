/**
 * Authorization in the pipeline of the virtual server: the check before an operation, the filter of lists after it.
 *
 * Stands before the rate limit, so that a denied call costs nothing, and before everything that looks up what was named
 * (optimizer, code mode, workflows, the core), so that a denied caller cannot tell what exists; and outside of whatever
 * adds items to lists, so that these are checked too. Inner calls of a script pass through it again, one by one, under their real names and with their real
 * arguments; the steps of a workflow do not: the workflow itself was permitted.
 *
 * A refusal is a FORBIDDEN error with the text of its kind; lists are answered with what the caller may use.
 * Source: docs/specification/virtual-server.md#authentication, authentication (incoming, 2) and endpoints (execute_tool_script); design, section 3 "Request".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Gate, HintsResponse } from '../../policy/index.ts'
import type { Client, Middleware } from '../pipeline/operation.ts'

export interface AuthorizeOptions {
  /** The gate in force; undefined: nobody is asked. Read for each operation, because a reload may replace it. */
  readonly gate: () => Gate | undefined
  /**
   * Hints of a tool that this client could call, looked up as the call itself would. Whatever offers tools of its own
   * must be asked here too, because a tool that is said not to exist cannot be called.
   */
  readonly hintsOf: (client: Client, tool: string) => Promise<HintsResponse>
  /** Called with each decision about a request. */
  readonly decided?: (method: string, name: string | undefined, decision: Decision) => void
}

/** `error`: the decision could not be made, so that the request is refused. */
export type Decision = 'allowed' | 'denied' | 'error'

export function authorize({ gate, hintsOf, decided = () => {} }: AuthorizeOptions): Middleware {
  return async function authorize({ method, params, client, signal }, next) {
    const present = gate()
    if (!present) return next()
    try {
      await present.check(client.caller, method, params, { signal, hintsOf: (tool) => hintsOf(client, tool) })
    } catch (error) {
      decided(method, params.text('name'), isDenial(error) ? 'denied' : 'error')
      throw error
    }
    decided(method, undefined, 'allowed')
    const outcome = await next()
    if (outcome.kind !== 'result') return outcome
    const result = await present.filter(client.caller, method, outcome.result, signal)
    return result === outcome.result ? outcome : { kind: 'result', result }
  }
}

function isDenial(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'FORBIDDEN'
}
