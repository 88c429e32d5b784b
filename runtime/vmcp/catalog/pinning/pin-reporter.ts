import { type Events, visibleText } from '../../../observe/index.ts'
import type { PinReport } from './report.ts'
import type { PinDrift } from './types.ts'

const maxExamples = 5
const maxName = 100
const kindNames = {
  tool: 'tool',
  prompt: 'prompt',
  resourceTemplate: 'resource template',
  skill: 'skill',
  instructions: 'instructions',
}

/** Reports changes in how backends differ from their locks. */
export class PinReporter {
  readonly #events: Events
  readonly #drifted = new Map<string, string>()
  readonly #failures = new Map<string, string>()

  constructor(events: Events) {
    this.#events = events
  }

  /** True while a reported problem persists. */
  get isOpen(): boolean {
    return this.#drifted.size + this.#failures.size > 0
  }

  /** Reports the changes since the last call. `reports` covers all backends, and is empty while pinning is off. */
  update(reports: readonly PinReport[]): void {
    for (const report of reports) {
      const failure = report.closed ? 'no lock exists, and pinning.noLock is block' : report.failure
      this.#reportLock(report.backend, failure, { inForce: report.lock === 'ok', missing: report.closed })
      if (report.lock !== 'ok') this.#reportResolved(report.backend, { compared: false })
      else if (report.observed) this.#reportDrift(report)
    }
    const present = new Set(reports.map(({ backend }) => backend))
    for (const backend of [...this.#failures.keys()])
      if (!present.has(backend)) this.#reportLock(backend, undefined, { inForce: false, missing: false })
    for (const backend of [...this.#drifted.keys()])
      if (!present.has(backend)) this.#reportResolved(backend, { compared: false })
  }

  #reportLock(
    backend: string,
    failure: string | undefined,
    { inForce, missing }: { readonly inForce: boolean; readonly missing: boolean },
  ): void {
    if (this.#failures.get(backend) === failure) return
    if (failure === undefined) this.#failures.delete(backend)
    else this.#failures.set(backend, failure)
    this.#events.emit('tool_lock', { backend, failure, in_force: inForce, missing })
  }

  #reportDrift({ backend, counts, drift, quiet }: PinReport): void {
    const { changed, new: added, removed } = counts
    if (changed + added + removed === 0) {
      this.#reportResolved(backend, { compared: true })
      return
    }
    const present = JSON.stringify([
      counts,
      quiet,
      drift.map(({ state, digest, name }) => [state, digest, name]),
    ])
    if (this.#drifted.get(backend) === present) return
    this.#drifted.set(backend, present)
    const examples = drift.slice(0, maxExamples).map(describe)
    this.#events.emit('tools_drifted', {
      backend,
      compared: true,
      changed,
      new: added,
      removed,
      quiet,
      examples,
    })
  }

  /** Reports that no items differ, or that items are no longer compared. */
  #reportResolved(backend: string, { compared }: { readonly compared: boolean }): void {
    if (!this.#drifted.delete(backend)) return
    this.#events.emit('tools_drifted', {
      backend,
      compared,
      changed: 0,
      new: 0,
      removed: 0,
      quiet: false,
      examples: [],
    })
  }
}

/** Describes a difference, for example `tool x changed (text, input)`. */
function describe({ kind, name, state, parts, renamedFrom }: PinDrift): string {
  const what = name === '' ? kindNames[kind] : `${kindNames[kind]} ${visibleName(name)}`
  if (state === 'changed') return `${what} changed (${parts.join(', ')})`
  if (state === 'removed') return `${what} was removed`
  return renamedFrom === undefined
    ? `${what} is new`
    : `${what} is new, with the same definition as ${visibleName(renamedFrom)}`
}

function visibleName(name: string): string {
  return visibleText(name.slice(0, maxName)).slice(0, maxName)
}
