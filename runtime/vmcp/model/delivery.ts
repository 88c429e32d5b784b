/** Lets links of the chain limit and observe the request to a backend. */
import type { GatehouseError } from '../../../schemas/index.ts'

/** Limit for a response, or for a single event of a stream. */
export interface ResponseLimit {
  readonly bytes: number
  /** Returns the error for a larger response. */
  readonly error: () => GatehouseError
}

/** Reports whether any part of a request may have reached its backend. */
export interface Delivery {
  sent: boolean
}
