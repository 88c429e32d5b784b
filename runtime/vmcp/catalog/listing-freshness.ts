/** Determines how long a listing may be used before it is read again. */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Listing } from './listing.ts'

/** Lifetimes in milliseconds for a backend that announces changes of all its lists, and for any other backend. */
export const announcedMs = 5 * 60_000
export const unannouncedMs = 30_000

export function goodFor({ server }: Listing): number {
  const { capabilities } = server
  const announced = (['tools', 'resources', 'prompts'] as const).every(
    (kind) => !capabilities[kind] || capabilities.listChanged.has(kind),
  )
  return announced ? announcedMs : unannouncedMs
}

/** True when some lists could not be read; they are read again after a pause. */
export function hasFailedLists({ defects = [] }: Listing): boolean {
  return defects.some(({ isTransient }) => isTransient)
}

/** True when some lists still use the items of an earlier read. */
export function hasStaleLists({ defects = [] }: Listing): boolean {
  return defects.some(({ state }) => state === 'stale')
}

/**
 * True when no client should wait for the next read: the last items are in use, or the failed read took the whole
 * timeout.
 */
export function isSlowToRepair({ defects = [] }: Listing): boolean {
  return defects.some(
    ({ isTransient, state, error }) => isTransient && (state !== 'failed' || isTimeout(error)),
  )
}

function isTimeout(error: Error | undefined): boolean {
  return error instanceof GatehouseError && error.code === 'BACKEND_TIMEOUT'
}
