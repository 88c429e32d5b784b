/**
 * One part of a runtime configuration that is made from a reference: its value, or why it cannot be made.
 */
import type { SyncFailure } from '../sync/conditions.ts'

export type ConfigPart<T> =
  | { readonly value: T; readonly failure?: undefined }
  | { readonly value?: undefined; readonly failure: SyncFailure }

export function failed(reason: string, message: string): { readonly failure: SyncFailure } {
  return { failure: { reason, message } }
}
