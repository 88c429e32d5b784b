/** Draws a session, one drawing at a time, always ending with the latest state. */
import { clientAddressesOf, type DisplayedSession } from './client-addresses.ts'
import type { LocalObject } from '../../manifests/objects.ts'
import { resourceRows } from './resources.ts'
import type { ScreenWriter } from './screen.ts'

/** Maximum number of changed objects to list by name. */
const namedObjects = 5

export interface DisplayOptions {
  readonly title: string
  readonly writer: Pick<ScreenWriter, 'show'>
  readonly onError: (error: unknown) => void
}

export class Display {
  /** Problems with the latest edit; '' once the edit has been applied. */
  problems = ''
  /** Summary of the latest edit; '' before the first edit. */
  #edit = ''
  readonly #options: DisplayOptions
  #drawing: Promise<void> | undefined
  #again = false
  /** Time when the last workload finished starting. */
  #startedAt: number | undefined

  constructor(options: DisplayOptions) {
    this.#options = options
  }

  /** Records an applied edit. Ignores edits that have no effect, such as a changed comment. */
  noteEdit(changed: readonly LocalObject[]): void {
    if (changed.length === 0) return
    const names = changed.slice(0, namedObjects).map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    const more = changed.length > namedObjects ? ` and ${changed.length - namedObjects} more` : ''
    this.#edit = `edit applied at ${new Date().toTimeString().slice(0, 8)}: ${names.join(', ')}${more}`
  }

  redraw(session: DisplayedSession): void {
    this.#again = true
    this.#drawing ??= this.#drawAll(session)
  }

  /** Resolves when no drawing is in progress. */
  async settled(): Promise<void> {
    await this.#drawing
  }

  async #drawAll(session: DisplayedSession): Promise<void> {
    while (this.#again) {
      this.#again = false
      await this.#draw(session).catch(this.#options.onError)
    }
    // Reset in the same event loop turn as the last check, so that no change is missed in between.
    this.#drawing = undefined
  }

  async #draw(session: DisplayedSession): Promise<void> {
    const starting = session.workloads.some(({ phase }) => phase === 'starting')
    this.#startedAt = starting ? undefined : (this.#startedAt ?? Date.now())
    const addresses = await clientAddressesOf(session, this.#startedAt)
    const { workloads, cluster } = session
    this.#options.writer.show({
      title: this.#options.title,
      problems: this.problems,
      edit: this.#edit,
      resources: resourceRows({ objects: cluster.objects, workloads, addresses }),
      addresses,
    })
  }
}
