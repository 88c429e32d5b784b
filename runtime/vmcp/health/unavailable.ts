/** The one wording for backends that requests are held back from: a client must not take it for "there is no such thing". */
import { GatehouseError } from '../../../schemas/index.ts'

export interface UnavailableOptions {
  /** What the client can do about it; default: try again later. */
  readonly hint?: string | undefined
  readonly cause?: Error | undefined
  /** Those of the backends that are left out, because their settings cannot be used. */
  readonly leftOut?: readonly string[] | undefined
}

export function unavailable(
  backends: readonly string[],
  { hint, cause, leftOut = [] }: UnavailableOptions = {},
): GatehouseError {
  const who =
    backends.length === 1 ? `backend ${backends[0] ?? ''} is` : `backends ${backends.join(', ')} are`
  const state =
    leftOut.length > 0
      ? [
          'unavailable',
          `the configuration of ${leftOut.join(', ')} is invalid and must be corrected`,
          ...(hint ? [hint] : []),
        ]
      : ['temporarily unavailable', hint ?? 'try again later']
  return new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: `${who} ${state.join(': ')}`,
    data: { backends },
    ...(cause ? { cause } : {}),
  })
}
