/** The one wording for backends that requests are held back from: a client must not take it for "there is no such thing". */
import { GatehouseError } from '../../../schemas/index.ts'

export interface UnavailableOptions {
  /** What the client can do about it; default: try again later. */
  readonly hint?: string | undefined
  /** The list that is missing, such as `prompts/list`; default: the backends as a whole. */
  readonly list?: string | undefined
  /** Replaces the text when a retry does not help: it names each backend and what has to change. */
  readonly reason?: string | undefined
  readonly cause?: Error | undefined
  /** Those of the backends that are left out, because their settings cannot be used. */
  readonly leftOut?: readonly string[] | undefined
}

export function unavailable(
  backends: readonly string[],
  { hint, reason, list, cause, leftOut = [] }: UnavailableOptions = {},
): GatehouseError {
  const who =
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
    detail: reason !== undefined && leftOut.length === 0 ? reason : `${who} ${state.join(': ')}`,
    data: { backends, ...(list === undefined ? {} : { list }) },
    ...(cause ? { cause } : {}),
  })
}
