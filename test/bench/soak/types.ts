/** What the parts of the soak share. */
import type { RpcMessage } from '../../helpers/mcp/wire.ts'
import type { Ledger } from './ledger.ts'

/** Backends that may be away. */
export type Shaky = 'gamma' | 'epsilon'

export interface Soak {
  /** MCP endpoint of the virtual server. */
  readonly url: string
  readonly origin: string
  readonly ledger: Ledger
  /** True when clients are to go home. */
  over(): boolean
  /** Waits until it is this client's turn, so that the rate is kept. */
  pace(): Promise<void>
  /** True while a backend is away, and for a while after it has come back. */
  shaky(backend: Shaky): boolean
  /** Counts notifications that a client found on its stream. */
  heard(messages: readonly RpcMessage[]): void
}
