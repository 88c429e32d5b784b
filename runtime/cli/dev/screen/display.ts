/** Shows a session on the screen: at most one drawing at a time, and always the latest state last. */
import type { DevSession } from '../session.ts'
import { clientAddressesOf } from './client-addresses.ts'
import { resourceRows } from './resources.ts'
import type { ScreenWriter } from './screen.ts'

export interface DisplayOptions {
  readonly title: string
  readonly writer: ScreenWriter
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

  redraw(session: DevSession): void {
    this.#again = true
    this.#drawing ??= this.#drawAll(session)
      .catch(this.#options.onError)
      .finally(() => (this.#drawing = undefined))
  }

  /** Resolves when nothing is being drawn. */
  async settled(): Promise<void> {
    await this.#drawing
  }

  async #drawAll(session: DevSession): Promise<void> {
    while (this.#again) {
      this.#again = false
      await this.#draw(session)
    }
  }

  async #draw(session: DevSession): Promise<void> {
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
