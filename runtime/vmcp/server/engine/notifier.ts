/**
 * Tells open sessions that a list has changed: only those whose own view changed, once per burst of changes.
 *
 * A session is notified of a list only after it has read it (before that there is nothing to refresh). The new state is
 * read before the client is told, so that its next list shows it.
 */
import { notificationMessage } from '../../../mcp/index.ts'
import type { ListKind } from '../../backends/connection.ts'
import type { Watcher } from '../../clients/watcher.ts'

const settleMs = 20
const parallel = 16
const kinds: readonly ListKind[] = ['tools', 'resources', 'prompts']

export interface NotifierOptions {
  readonly watchers: () => Iterable<Watcher>
  readonly onError: (error: unknown) => void
}

export class Notifier {
  readonly #options: NotifierOptions
  #timer: NodeJS.Timeout | undefined
  #running = false
  #again = false
  #everybody = false
  #closed = false

  constructor(options: NotifierOptions) {
    this.#options = options
  }

  /** What callers may see has changed, whatever there is: everybody has to ask again. */
  notifyAll(): void {
    this.#everybody = true
    this.notify()
  }

  /** Something may have changed. */
  notify(): void {
    if (this.#closed) return
    if (this.#running) {
      this.#again = true
      return
    }
    this.#timer ??= setTimeout(() => void this.#run(), settleMs)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #run(): Promise<void> {
    this.#timer = undefined
    this.#running = true
    const everybody = this.#everybody
    this.#everybody = false
    const queue = [...this.#options.watchers()].filter((watcher) => watcher.seen !== undefined)
    const workers = Array.from({ length: Math.min(parallel, queue.length) }, async () => {
      for (let watcher = queue.pop(); watcher; watcher = queue.pop()) await this.#tell(watcher, everybody)
    })
    await Promise.all(workers)
    this.#running = false
    if (this.#again) {
      this.#again = false
      this.notify()
    }
  }

  async #tell(watcher: Watcher, whatever: boolean): Promise<void> {
    try {
      const { digests } = await watcher.view()
      const { seen } = watcher
      if (!seen || this.#closed) return
      const changed = kinds.filter(
        (kind) => seen[kind] !== undefined && (whatever || seen[kind] !== digests[kind]),
      )
      if (changed.length === 0) return
      watcher.seen = { ...seen, ...Object.fromEntries(changed.map((kind) => [kind, digests[kind]])) }
      for (const kind of changed)
        watcher.notify(notificationMessage(`notifications/${kind}/list_changed`), kind)
    } catch (error) {
      this.#options.onError(error)
    }
  }
}
