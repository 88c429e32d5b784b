import { hash } from 'node:crypto'

/** Returns a short hash of a session id for display. The hash cannot be used as an id. */
export function sessionHash(id: string): string {
  return hash('sha256', id, 'hex').slice(0, 12)
}
