/**
 * One part of a runtime configuration that is made from a reference: its value, or why it cannot be made.
 */
import type { Failure } from '../sync/conditions.ts'

export type Part<T> =
  | { readonly value: T; readonly failure?: undefined }
  | { readonly value?: undefined; readonly failure: Failure }

export function failed(reason: string, message: string): { readonly failure: Failure } {
  return { failure: { reason, message } }
}
