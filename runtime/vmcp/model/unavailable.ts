import { GatehouseError } from '../../../schemas/index.ts'

export interface UnavailableOptions {
  /** The next step for the client. By default, the message advises the client to try again later. */
  readonly hint?: string | undefined
  /** The missing list, such as `prompts/list`. By default, the error covers everything that the backends offer. */
  readonly list?: string | undefined
  /** Replaces the whole message if a retry does not help. The text lists each backend with the required change. */
  readonly reason?: string | undefined
  readonly cause?: Error | undefined
  /** The backends in this error that are excluded because their settings are invalid. */
  readonly leftOut?: readonly string[] | undefined
}

/**
 * Returns the common error for unavailable backends. A client must be able to distinguish this error from "not found".
 */
export function unavailableError(
  backends: readonly string[],
  { hint, reason, list, cause, leftOut = [] }: UnavailableOptions = {},
): GatehouseError {
  const subject =
    backends.length === 1 ? `backend ${backends[0] ?? ''} is` : `backends ${backends.join(', ')} are`
  const forList = list === undefined ? '' : ` for ${list}`
  const state =
    leftOut.length > 0
      ? [
          `unavailable${forList}`,
          `the configuration of ${leftOut.join(', ')} is invalid and must be corrected`,
          ...(hint ? [hint] : []),
        ]
      : [`temporarily unavailable${forList}`, hint ?? 'try again later']
  return new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: reason !== undefined && leftOut.length === 0 ? reason : `${subject} ${state.join(': ')}`,
    data: { backends, ...(list === undefined ? {} : { list }) },
    ...(cause ? { cause } : {}),
  })
}
