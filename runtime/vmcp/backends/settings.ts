/** One backend's settings, derived from the configuration. */
import { hash } from 'node:crypto'
import type { PinRules } from '../model/catalog/pinning.ts'
import type { ChannelTarget } from './transport/target.ts'

export interface BackendSettings {
  readonly name: string
  readonly transport: 'streamable-http' | 'sse' | 'openapi'
  readonly target: ChannelTarget
  readonly timeoutMs: number
  /** True if responses may depend on the requester, that is, on the caller's credentials or passed-through headers. */
  readonly perCaller: boolean
  /** A digest that is equal for equal settings. A backend is replaced when its fingerprint changes. */
  readonly fingerprint: string
  /** Authentication type, for the status report. */
  readonly authType: string
  /** Rules for hashing the backend's items. Undefined if pinning is off. */
  readonly pins?: PinRules | undefined
  /**
   * Returns the earliest expiry time of a certificate in the backend's bundle, in milliseconds since the epoch. Returns
   * undefined if there is no bundle.
   */
  readonly caEndsAt?: (() => number | undefined) | undefined
}

/**
 * Identifies the backend to which a stored or sealed value belongs. Returns a digest of the backend's name and address.
 * The identity changes if the name or the address changes.
 */
export function backendIdentity({ name, target }: Pick<BackendSettings, 'name' | 'target'>): string {
  return hash('sha256', JSON.stringify([name, target.url.href]), 'base64url')
}
