/**
 * One part of a runtime configuration that is made from a reference: its value, or why it cannot be made.
 */
import type { Fault } from '../conditions.ts'

export type Part<T> =
  | { readonly value: T; readonly fault?: undefined }
  | { readonly value?: undefined; readonly fault: Fault }

export function faulty(reason: string, message: string): { readonly fault: Fault } {
  return { fault: { reason, message } }
}
