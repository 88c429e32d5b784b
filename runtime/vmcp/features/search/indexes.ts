/**
 * The cached indexes, keyed by the set of visible tools. All sessions and both eras share the indexes, and each index
 * is built once.
 *
 * A changed set has a different key. The old index is evicted when space is needed.
 */
import { LRUCache } from 'lru-cache'
import { buildIndex, type ToolIndex } from './tool-index.ts'
import type { VisibleTools } from './visible-tools.ts'

const maxIndexes = 256
const maxHeldBytes = 256 * 1_048_576
/** Approximate index size for each byte of the list, including a vector of about 500 bytes for each tool. */
const bytesPerByte = 8

interface Slot {
  readonly ready: Promise<ToolIndex>
  /** The finished index. Undefined while the index is being built. */
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

  /** Returns the index of a set. Concurrent callers share one build. */
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

  /** Returns the built indexes, most recently used first. */
  *all(): Iterable<ToolIndex> {
    for (const { index } of this.#slots.values()) if (index) yield index
  }

  close(): void {
    this.#slots.clear()
  }
}

/** Closes the index later, because a caller that has just received the index will search it synchronously. */
function closeLater({ keywords }: ToolIndex): void {
  setImmediate(() => keywords.close())
}
