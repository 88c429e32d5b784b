/** One part of the state that a build leaves behind, and its use by the current code. */
import type { Test } from 'tap'
import type { Store } from '../../../runtime/store/index.ts'

/** JSON value that a fixture file contains. */
export type Recorded = ReturnType<typeof JSON.parse>

export interface StoredPart {
  /** Name of the fixture file. */
  readonly name: string
  /** Reason to skip the part on this machine. */
  readonly skip?: string | false
  /** Creates state with the current code. */
  record(t: Test): Promise<unknown>
  /** Uses state that an earlier build or the current build has recorded. */
  check(t: Test, recorded: Recorded): Promise<void>
}

/** At least 32 bytes. Fixtures of every version are sealed with it. */
export const recordedSecret = 'fixed-secret-of-recorded-fixtures-0123456789'
/** Time of the records whose clock is fixed. */
export const recordedAtMs = 1_893_456_000_000

/** Entries in their stored form. */
export async function dumpStore(store: Store): Promise<Record<string, string>> {
  const records: Record<string, string> = {}
  for await (const keys of store.scan())
    for (const key of keys.toSorted()) {
      const value = await store.get(key)
      if (value !== undefined) records[key] = value
    }
  return records
}
