import type { ListKind } from '../backends/connection.ts'
import type { Catalog } from '../catalog/catalog.ts'

/** A session or listening request that is notified of list changes. */
export interface Watcher {
  /** Digest of each list that the client has read. Undefined until the client has read a list. */
  seen: Readonly<Partial<Record<ListKind, string>>> | undefined
  /** Returns the client's current catalog. Rejects if no list could be read. */
  view(): Promise<Catalog>
  notify(message: Buffer, kind: ListKind): void
}
