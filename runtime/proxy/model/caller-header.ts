/**
 * Tells the bridge of a stdio server which requests are one caller's, so that the processes of two callers never mix: a
 * digest of the caller, set by the proxy in front of the bridge alone, and only where the configuration says that the
 * target is one. A client's own header of that name is never forwarded.
 */
import { hash } from 'node:crypto'

/** Lower case. */
export const callerHeader = 'x-gatehouse-caller'

export function callerDigest(key: string): string {
  return hash('sha256', key, 'base64url')
}
