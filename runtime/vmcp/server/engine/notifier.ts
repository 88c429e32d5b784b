/**
 * Notifies open sessions that a list has changed. Notifies only sessions with a changed view, and only once for each
 * burst of changes.
 *
 * A session is notified of a list only after it has read the list. Before that, the session has nothing to refresh. The
 * new state is read before the notification is sent, so the client's next list reflects the new state.
 */
import { notificationMessage } from '../../../mcp/index.ts'
import type { ListKind } from '../../backends/connection.ts'
import type { Watcher } from '../../clients/session-life.ts'

const settleMs = 20
const maxParallel = 16
const kinds: readonly ListKind[] = ['tools', 'resources', 'prompts']

export interface NotifierOptions {
  readonly watchers: () => Iterable<Watcher>
  readonly onError: (error: unknown) => void
}

export class Notifier {
  readonly #options: NotifierOptions
  #timer: NodeJS.Timeout | undefined
  #running = false
  #isPending = false
  #notifiesAll = false
  #closed = false

  constructor(options: NotifierOptions) {
    this.#options = options
  }

  /** Sends every session a notification for each list that the session has read, because permissions have changed. */
  notifyAll(): void {
    this.#notifiesAll = true
    this.notify()
  }

  /** Checks for changed lists after a short pause. */
  notify(): void {
    if (this.#closed) return
    if (this.#running) {
      this.#isPending = true
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
    const notifiesAll = this.#notifiesAll
    this.#notifiesAll = false
    const queue = [...this.#options.watchers()].filter((watcher) => watcher.seen !== undefined)
    const workers = Array.from({ length: Math.min(maxParallel, queue.length) }, async () => {
      for (let watcher = queue.pop(); watcher; watcher = queue.pop())
        await this.#notifyWatcher(watcher, notifiesAll)
    })
    await Promise.all(workers)
    this.#running = false
    if (this.#isPending) {
      this.#isPending = false
      this.notify()
    }
  }

  async #notifyWatcher(watcher: Watcher, isForced: boolean): Promise<void> {
    try {
      const { digests } = await watcher.view()
      const { seen } = watcher
      if (!seen || this.#closed) return
      const changed = kinds.filter(
        (kind) => seen[kind] !== undefined && (isForced || seen[kind] !== digests[kind]),
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
