import { hash } from 'node:crypto'
import type { Caller } from '../../net/index.ts'

/** Returns the key of a user in stores: a digest of issuer and subject that does not identify the person. */
export function userKey({ key }: Caller): string {
  return hash('sha256', key, 'base64url')
}
