import { hash } from 'node:crypto'
import type { BackendSettings } from './settings.ts'

/**
 * Identifies the backend to which a stored or sealed value belongs. Returns a digest of the backend's name and address.
 * The identity changes if the name or the address changes.
 */
export function backendIdentity({ name, target }: Pick<BackendSettings, 'name' | 'target'>): string {
  return hash('sha256', JSON.stringify([name, target.url.href]), 'base64url')
}
