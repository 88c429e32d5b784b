/** What the configuration says of one backend, made ready for use. */
import type { PinRules } from '../model/catalog/pinning.ts'
import type { ChannelTarget } from './transport/target.ts'

export interface BackendSettings {
  readonly name: string
  readonly transport: 'streamable-http' | 'sse'
  readonly target: ChannelTarget
  readonly timeoutMs: number
  /** True when what the backend answers may depend on who asks: credentials of the caller, passed-through headers. */
  readonly perCaller: boolean
  /** Equal settings have equal fingerprints; a changed one replaces the backend. */
  readonly fingerprint: string
  /** Authentication type, for the status report. */
  readonly authType: string
  /** How its items are digested for pinning; undefined: they are not. */
  readonly pins?: PinRules | undefined
  /** When the first certificate of its bundle ends, milliseconds since the epoch; undefined without a bundle. */
  readonly caEndsAt?: (() => number | undefined) | undefined
}
