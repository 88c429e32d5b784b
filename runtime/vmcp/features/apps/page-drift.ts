/**
 * Remembers which pages differ from their locks, and reports changes. Pages are compared only when a client reads them,
 * so the reports cover the pages that clients have read.
 */
import { isDeepStrictEqual } from 'node:util'
import type { RuntimeToolLock } from '../../../../schemas/index.ts'
import { type Events, visibleText } from '../../../observe/index.ts'

export type PageState = 'pinned' | 'changed' | 'new'

export interface PageDriftCounts {
  readonly changed: number
  readonly new: number
}

export interface DriftedPage {
  readonly page: string
  readonly state: Exclude<PageState, 'pinned'>
}

/** Clients choose the addresses that they read, so the number of recorded pages is limited for each backend. */
const maxPages = 1_000
const maxExamples = 5
const maxName = 200
/** A backend may show different pages to different callers. A page that matches again stays reported for this time. */
const keepMs = 10 * 60_000

interface BackendPages {
  readonly locked: RuntimeToolLock['pages']
  readonly pages: Map<string, { readonly state: DriftedPage['state']; at: number; readonly isQuiet: boolean }>
}

export class PageDrift {
  readonly #events: Pick<Events, 'emit'>
  readonly #now: () => number
  readonly #backends = new Map<string, BackendPages>()

  constructor(events: Pick<Events, 'emit'>, now: () => number) {
    this.#events = events
    this.#now = now
  }

  /** Sets the locks with pages, keyed by backend. Discards the results of comparisons with other locks. */
  setLocks(locks: ReadonlyMap<string, Pick<RuntimeToolLock, 'pages'>>): void {
    for (const [backend, { pages, locked }] of this.#backends) {
      const lock = locks.get(backend)
      if (lock && isDeepStrictEqual(lock.pages, locked)) continue
      this.#backends.delete(backend)
      if (pages.size > 0) this.#emit(backend, [], { compared: lock !== undefined })
    }
    for (const [backend, lock] of locks)
      if (!this.#backends.has(backend)) this.#backends.set(backend, { locked: lock.pages, pages: new Map() })
  }

  /** Records the comparison of a page that a client has read. `quiet` is true if differences are only observed. */
  record(backend: string, uri: string, state: PageState, { quiet }: { readonly quiet: boolean }): void {
    const { pages } = this.#backends.get(backend) ?? {}
    if (!pages) return
    const page = pageName(uri)
    const known = pages.get(page)
    if (state === 'pinned') {
      if (!known || this.#now() - known.at < keepMs) return
      pages.delete(page)
    } else {
      if (!known && pages.size >= maxPages) return
      if (known?.state === state && known.isQuiet === quiet) {
        known.at = this.#now()
        return
      }
      pages.set(page, { state, at: this.#now(), isQuiet: quiet })
    }
    this.#emit(backend, driftedIn(pages), { compared: true })
  }

  /** Returns the pages of a backend that differ, sorted by address. Undefined if the backend has no lock with pages. */
  driftOf(backend: string): readonly DriftedPage[] | undefined {
    const found = this.#backends.get(backend)
    return found && driftedIn(found.pages)
  }

  #emit(backend: string, drift: readonly DriftedPage[], { compared }: { readonly compared: boolean }): void {
    const pages = this.#backends.get(backend)?.pages
    this.#events.emit('pages_drifted', {
      backend,
      compared,
      ...countsOf(drift),
      quiet: [...(pages?.values() ?? [])].every(({ isQuiet }) => isQuiet),
      examples: drift.slice(0, maxExamples).map(({ page, state }) => `page ${page} ${verbs[state]}`),
    })
  }
}

const verbs = { changed: 'changed', new: 'is new' } as const

export function countsOf(drift: readonly DriftedPage[]): PageDriftCounts {
  const changed = drift.filter(({ state }) => state === 'changed').length
  return { changed, new: drift.length - changed }
}

function driftedIn(pages: BackendPages['pages']): readonly DriftedPage[] {
  return [...pages].map(([page, { state }]) => ({ page, state })).sort((a, b) => (a.page < b.page ? -1 : 1))
}

/** Returns the address of a page for reports. Queries, fragments and user information may contain secrets. */
export function pageName(uri: string): string {
  return visibleText(uri.replace(/[?#].*|(?<=^ui:\/\/)[^/]*@/gsu, '').slice(0, maxName))
}
