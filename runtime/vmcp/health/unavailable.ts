/** The one wording for backends that requests are held back from: a client must not take it for "there is no such thing". */
import { GatehouseError } from '../../../schemas/index.ts'

export interface UnavailableOptions {
  /** What the client can do about it; default: try again later. */
  readonly hint?: string | undefined
  /** The list that is missing, such as `prompts/list`; default: the backends as a whole. */
  readonly list?: string | undefined
  readonly cause?: Error | undefined
}

export function unavailable(
  backends: readonly string[],
  { hint = 'try again later', list, cause }: UnavailableOptions = {},
): GatehouseError {
  const who =
    backends.length === 1 ? `backend ${backends[0] ?? ''} is` : `backends ${backends.join(', ')} are`
  return new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: `${who} temporarily unavailable${list === undefined ? '' : ` for ${list}`}: ${hint}`,
    data: { backends, ...(list === undefined ? {} : { list }) },
    ...(cause ? { cause } : {}),
  })
}
