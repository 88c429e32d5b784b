/** Types that the parts of the soak share. */
import type { RpcMessage } from '../../helpers/mcp/wire.ts'
import type { Ledger } from './ledger.ts'

/** Backends that may be down. */
export type Shaky = 'gamma' | 'epsilon'

export interface Soak {
  /** MCP endpoint of the virtual server. */
  readonly url: string
  readonly origin: string
  readonly ledger: Ledger
  /** True when clients must stop. */
  over(): boolean
  /** Waits for this client's next turn, to keep the rate. */
  pace(): Promise<void>
  /** True while a backend is down, and for a while after it has come back. */
  shaky(backend: Shaky): boolean
  /** Counts the notifications on a client's stream. */
  heard(messages: readonly RpcMessage[]): void
}
