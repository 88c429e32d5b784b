/**
 * The header that identifies callers to the bridge of a stdio server, so that the bridge never mixes their processes.
 * The header contains a digest of the caller, and is set only when the configuration marks the target as such a bridge.
 * A header with this name from a client is never forwarded.
 */
import { hash } from 'node:crypto'

/** Lower case. */
export const callerHeader = 'x-gatehouse-caller'

export function callerDigest(key: string): string {
  return hash('sha256', key, 'base64url')
}
