/** Names in the settings that no backend has: what was told already is not told again. */
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import { nameProblems } from '../start-check.ts'

export class NameProblems {
  readonly #events: Events
  #problems: readonly string[] = []

  constructor(events: Events) {
    this.#events = events
  }

  /** One line for each. */
  get problems(): readonly string[] {
    return this.#problems
  }

  /** Takes a configuration; it may be applied often. */
  replace(config: VmcpConfig, invalid: readonly ExcludedBackend[]): void {
    const before = this.#problems
    this.#problems = nameProblems(config, invalid)
    for (const problem of this.#problems)
      this.#events.emit('backend_name_unknown', { problem, resolved: false })
    for (const problem of before)
      if (!this.#problems.includes(problem))
        this.#events.emit('backend_name_unknown', { problem, resolved: true })
  }
}
