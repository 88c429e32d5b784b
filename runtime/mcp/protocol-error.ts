/** What a server sends against the protocol: clients get the fixed text, the log gets what it was. */
import { GatehouseError } from '../../schemas/index.ts'

export function protocolError(what: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(what) })
}
