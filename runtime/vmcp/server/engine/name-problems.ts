/** Reports, once per name, the names in the settings that do not match a backend. */
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import { nameProblems } from '../start-check.ts'

export class NameProblems {
  readonly #events: Events
  #problems: readonly string[] = []

  constructor(events: Events) {
    this.#events = events
  }

  /** The open problems, one line for each name. */
  get problems(): readonly string[] {
    return this.#problems
  }

  /** Checks a configuration. The same configuration may be applied repeatedly. */
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
