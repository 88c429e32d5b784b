/** Shows a session on the screen: at most one drawing at a time, and always the latest state last. */
import { clientAddressesOf, type DisplayedSession } from './client-addresses.ts'
import { resourceRows } from './resources.ts'
import type { ScreenWriter } from './screen.ts'

export interface DisplayOptions {
  readonly title: string
  readonly writer: Pick<ScreenWriter, 'show'>
  readonly onError: (error: unknown) => void
}

export class Display {
  /** Problems of the latest edit; '' when it is applied. */
  problems = ''
  readonly #options: DisplayOptions
  #drawing: Promise<void> | undefined
  #again = false
  /** When the last workload ceased to be starting. */
  #startedAt: number | undefined

  constructor(options: DisplayOptions) {
    this.#options = options
  }

  redraw(session: DisplayedSession): void {
    this.#again = true
    this.#drawing ??= this.#drawAll(session)
  }

  /** Resolves when nothing is being drawn. */
  async settled(): Promise<void> {
    await this.#drawing
  }

  async #drawAll(session: DisplayedSession): Promise<void> {
    while (this.#again) {
      this.#again = false
      await this.#draw(session).catch(this.#options.onError)
    }
    // In the same turn as the last look: a change in between would wait for the next one.
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
      resources: resourceRows({ objects: cluster.objects, workloads, addresses }),
      addresses,
    })
  }
}
