/** Names of users in the keys of stores. */
import { hash } from 'node:crypto'
import type { Caller } from '../../net/index.ts'

/** Issuer and subject, in a form that fits a key and says nothing about the person. */
export function userKey({ key }: Caller): string {
  return hash('sha256', key, 'base64url')
}
