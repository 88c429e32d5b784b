/**
 * The indexes in use, by set of visible tools: shared by all sessions and both eras, each built once, within a bound.
 *
 * A set that has changed has another key; the index of the old one goes when module is needed.
 */
import { LRUCache } from 'lru-cache'
import { buildIndex, type ToolIndex } from './tool-index.ts'
import type { VisibleTools } from './visible-tools.ts'

const maxIndexes = 256
const maxHeldBytes = 256 * 1_048_576
/** What an index needs for each byte of its list, roughly; and for the vector of each of about 500 bytes. */
const bytesPerByte = 8

interface Slot {
  readonly ready: Promise<ToolIndex>
  /** Set once it is built. */
  index: ToolIndex | undefined
}

export class Indexes {
  readonly #hidden: ReadonlySet<string>
  readonly #slots = new LRUCache<string, Slot>({
    max: maxIndexes,
    maxSize: maxHeldBytes,
    dispose: ({ ready }) => void ready.then(closeLater, () => {}),
  })

  constructor(hidden: ReadonlySet<string>) {
    this.#hidden = hidden
  }

  /** Whoever waits for the same set waits for the same build. */
  of(visible: VisibleTools): Promise<ToolIndex> {
    const known = this.#slots.get(visible.key)
    if (known) return known.ready
    const slot: Slot = { ready: buildIndex(visible, this.#hidden), index: undefined }
    const size = visible.pages.reduce((sum, page) => sum + page.length, 1) * bytesPerByte
    this.#slots.set(visible.key, slot, { size: Math.min(size, maxHeldBytes) })
    slot.ready.then(
      (index) => {
        slot.index = index
      },
      () => {
        if (this.#slots.peek(visible.key) === slot) this.#slots.delete(visible.key)
      },
    )
    return slot.ready
  }

  /** Those that are built, the one used last first. */
  *all(): Iterable<ToolIndex> {
    for (const { index } of this.#slots.values()) if (index) yield index
  }

  close(): void {
    this.#slots.clear()
  }
}

/** Whoever has just got hold of the index searches it before anything else happens. */
function closeLater({ keywords }: ToolIndex): void {
  setImmediate(() => keywords.close())
}
