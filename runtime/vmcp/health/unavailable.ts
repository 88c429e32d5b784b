/** The one wording for backends that requests are held back from: a client must not take it for "there is no such thing". */
import { GatehouseError } from '../../../schemas/index.ts'

export interface UnavailableOptions {
  /** What the client can do about it; default: try again later. */
  readonly hint?: string | undefined
  /** Replaces the text when a retry does not help: it names each backend and what has to change. */
  readonly reason?: string | undefined
  readonly cause?: Error | undefined
}

export function unavailable(
  backends: readonly string[],
  { hint = 'try again later', reason, cause }: UnavailableOptions = {},
): GatehouseError {
  const who = `${backends.length === 1 ? 'backend' : 'backends'} ${backends.join(', ')}`
  const are = backends.length === 1 ? 'is' : 'are'
  return new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: reason === undefined ? `${who} ${are} temporarily unavailable: ${hint}` : reason,
    data: { backends },
    ...(cause ? { cause } : {}),
  })
}
