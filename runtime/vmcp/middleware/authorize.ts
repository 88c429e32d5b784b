/**
 * Authorization of an operation: the check before it, the filter of lists after it.
 *
 * Requests are checked on their way in already, as a stage of the HTTP pipeline. This middleware is for operations that
 * do not come from there: each inner call of a script or of `call_tool` passes through it under its real name and with
 * its real arguments. It stands after the rate limit and before everything that looks up what was named, so that a
 * denied caller cannot tell what exists; and outside of whatever adds items to lists, so that these are judged too. The
 * steps of a workflow do not pass through it: the workflow itself was permitted.
 *
 * A refusal is a FORBIDDEN error with the text of its kind; lists are answered with what the caller may use.
 * Source: spec document 3, authentication (incoming, 2) and endpoints (execute_tool_script); design, section 3 "Request".
 */
import type { Gate, HintsAnswer } from '../../policy/index.ts'
import type { Client, Middleware } from '../operation.ts'

export interface AuthorizeOptions {
  /** The gate in force; undefined: nobody is asked. Read for each operation, because a reload may replace it. */
  readonly gate: () => Gate | undefined
  /** Hints of a tool that this client could call, looked up as the call itself would. */
  readonly hintsOf: (client: Client, tool: string) => Promise<HintsAnswer>
}

export function authorize({ gate, hintsOf }: AuthorizeOptions): Middleware {
  return async function authorize({ method, params, client, signal }, next) {
    const present = gate()
    if (!present) return next()
    await present.check(client.caller, method, params, { signal, hintsOf: (tool) => hintsOf(client, tool) })
    const outcome = await next()
    if (outcome.kind !== 'result') return outcome
    const result = await present.filter(client.caller, method, outcome.result, signal)
    return result === outcome.result ? outcome : { kind: 'result', result }
  }
}
