/**
 * Compares structured content with the response schema of the OpenAPI document.
 *
 * With `output: enforce`, a call waits for the check and fails on a mismatch. With `output: warn`, the check runs in the
 * background, and mismatches and failed checks are reported. At most one check per backend then runs at a time, and
 * other results are not checked, so that checks cannot slow down calls.
 */
import { GatehouseError, type OpenApiResponse } from '../../../../schemas/index.ts'
import { type Caller, signalOf } from '../../../net/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { Request } from '../connection.ts'

const backgroundMs = 10_000

/** Returns one line for each mismatch. Rejects if the check cannot run. */
export type CheckOutput = (
  schema: object,
  value: Buffer,
  subject: {
    readonly backend: string
    readonly tool: string
    readonly caller: Caller
    readonly signal: AbortSignal
  },
) => Promise<readonly string[]>

export interface OutputCheckOptions {
  readonly name: string
  readonly settings: Partial<OpenApiResponse>
  readonly checkOutput: CheckOutput
  readonly events: Pick<Events, 'emit'>
}

export class OutputCheck {
  readonly #options: OutputCheckOptions
  #isBusy = false

  constructor(options: OutputCheckOptions) {
    this.#options = options
  }

  /** Returns the mismatches that make the call fail. */
  async check(
    schema: object,
    value: Buffer,
    { tool, request }: { readonly tool: string; readonly request: Request },
  ): Promise<readonly string[]> {
    const { name: backend, settings, checkOutput, events } = this.#options
    const { caller } = request.sender
    if (!caller) throw new Error('a tool call without a caller')
    if (settings.output === 'enforce')
      return checkOutput(schema, value, { backend, tool, caller, signal: signalOf(request.signal) })
    if (this.#isBusy) return []
    this.#isBusy = true
    void checkOutput(schema, value, { backend, tool, caller, signal: AbortSignal.timeout(backgroundMs) })
      .then((mismatches) => {
        const [reason] = mismatches
        if (reason !== undefined) events.emit('openapi_response_mismatch', { backend, tool, reason })
      })
      .catch((err: unknown) =>
        events.emit('openapi_response_unchecked', { backend, tool, reason: reasonOf(err), err }),
      )
      .finally(() => {
        this.#isBusy = false
      })
    return []
  }
}

/** Returns the reason why a check could not run, such as busy workers. */
function reasonOf(error: unknown): string {
  if (error instanceof GatehouseError) return error.message
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `the check took longer than ${backgroundMs / 1_000} s`
  return 'the check failed'
}
