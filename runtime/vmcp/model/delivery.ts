/** Lets links in the chain limit and observe the request to a backend. */
import type { GatehouseError } from '../../../schemas/index.ts'

/** Limit for a response, or for a single event of a stream. */
export interface ResponseLimit {
  readonly bytes: number
  /** Returns the error for a response that exceeds the limit. */
  readonly error: () => GatehouseError
}

/** Facts about one request to a backend, recorded for the link in the chain that provides this object. */
export interface Delivery {
  /** True once any part of the request may have reached the backend. */
  sent: boolean
  /** Raw JSON of the cost that the backend reports in the result's `_meta`. */
  reportedCost?: Buffer | undefined
}
