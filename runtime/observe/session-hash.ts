/** Session ids as they may be shown: short hashes, which nobody can use in place of the id. */
import { hash } from 'node:crypto'

const digits = 12

export function sessionHash(id: string): string {
  return hash('sha256', id, 'hex').slice(0, digits)
}
