/** Which backend a stored or sealed value belongs to. */
import { hash } from 'node:crypto'
import type { BackendSettings } from './settings.ts'

/** Digest of name and address. Another backend of the same name, or the same one elsewhere, has another identity. */
export function backendIdentity({ name, target }: Pick<BackendSettings, 'name' | 'target'>): string {
  return hash('sha256', JSON.stringify([name, target.url.href]), 'base64url')
}
