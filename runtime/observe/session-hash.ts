/** Short hashes of session ids for display. They cannot be used as ids. */
import { hash } from 'node:crypto'

const digits = 12

export function sessionHash(id: string): string {
  return hash('sha256', id, 'hex').slice(0, digits)
}
