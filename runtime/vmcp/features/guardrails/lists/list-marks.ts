/**
 * Applies the rules for hidden characters to lists and reports the findings.
 *
 * A list is scanned after it has been read and before any client sees it. Changed rules take effect once they have been
 * applied to all known lists. Until then, the previous rules apply.
 */
import type { VmcpConfig } from '../../../../config/index.ts'
import { inTurns } from '../../../../mcp/index.ts'
import { type Events, type Instruments, visibleText } from '../../../../observe/index.ts'
import { maxExamples } from '../../../catalog/items/errors.ts'
import type { Listing } from '../../../catalog/listing.ts'
import { compileMarks } from '../marks.ts'
import { type GuardrailReporting, reportFinding } from '../reporting.ts'
import { MarkedLists } from './marked.ts'

export interface ListMarksParts {
  readonly events: Events
  readonly observation: { readonly telemetry: Instruments }
  readonly members: () => ReadonlyMap<string, { readonly listings: { all(): readonly Listing[] } }>
  /** Returns the part of a listing that pinning allows. */
  readonly pins: { apply(listing: Listing): Listing }
  /** Called when changed rules take effect. The change may affect what clients see. */
  readonly onChange: () => void
}

export class ListMarks {
  readonly #parts: ListMarksParts
  readonly #reporting: GuardrailReporting
  #settings = '[]'
  /** The current rules. If undefined, lists are not changed. */
  #current: MarkedLists | undefined
  #next: MarkedLists | undefined
  /** The last report of withheld items, keyed by backend. */
  readonly #reported = new Map<string, string>()

  constructor(server: string, parts: ListMarksParts) {
    this.#parts = parts
    this.#reporting = { server, events: parts.events, telemetry: parts.observation.telemetry }
  }

  replace({ guardrails }: VmcpConfig): void {
    for (const backend of this.#reported.keys())
      if (!this.#parts.members().has(backend)) this.#withheld(backend, 0, [])
    const mark = guardrails?.mark ?? []
    const settings = JSON.stringify(mark)
    if (settings === this.#settings) return
    this.#settings = settings
    const { hidden } = compileMarks(mark)
    this.#next = hidden.length > 0 ? new MarkedLists(hidden) : undefined
    void this.#changeOver(this.#next)
  }

  /** Applies changed rules to the known lists. The rules take effect immediately if no list has been read yet. */
  async #changeOver(next: MarkedLists | undefined): Promise<void> {
    for (;;) {
      const known = [...this.#parts.members().values()].flatMap(({ listings }) => listings.all())
      const listing = next && known.find((one) => !next.knows(one))
      if (!listing) break
      await inTurns(next.prepare(listing))
      if (this.#next !== next) return
    }
    const before = this.#current
    this.#current = next
    if (!before && !next) return
    for (const [backend, { listings }] of this.#parts.members()) this.#note(backend, listings.all())
    this.#parts.onChange()
  }

  /** Resolves as soon as a new listing can be shown to clients. */
  async ready(listing: Listing): Promise<void> {
    for (;;) {
      const unknown = [this.#current, this.#next].find((marks) => marks && !marks.knows(listing))
      if (!unknown) return
      await inTurns(unknown.prepare(listing))
    }
  }

  /** Returns the listing as clients see it. `offered` is the part that pinning allows. */
  apply(listing: Listing, offered: Listing): Listing {
    return this.#current?.apply(listing, offered) ?? offered
  }

  /** Reports the findings in a backend's listing after the listing has changed. */
  read(backend: string, listing: Listing | undefined): void {
    if (this.#current || this.#reported.has(backend)) this.#note(backend, listing ? [listing] : [])
  }

  /** Counts each finding once, in the first listing that contains it. */
  #note(backend: string, added: readonly Listing[]): void {
    const { members, pins } = this.#parts
    const found = (listing: Listing) => this.#current?.found(listing, pins.apply(listing))
    for (const listing of added) {
      const { findings = [], error } = found(listing) ?? {}
      const subject = { backend, original: undefined, direction: 'results' } as const
      for (const { method, finding } of findings)
        reportFinding(this.#reporting, { ...subject, method, finding })
      if (error !== undefined)
        reportFinding(this.#reporting, { ...subject, method: 'lists', finding: undefined, error })
    }
    const all = members().get(backend)?.listings.all() ?? []
    const [worst] = all
      .flatMap((listing) => found(listing)?.withheld ?? [])
      .sort((a, b) => b.leftOut - a.leftOut)
    this.#withheld(backend, worst?.leftOut ?? 0, worst?.problems.map(({ message }) => message) ?? [])
  }

  #withheld(backend: string, left_out: number, problems: readonly string[]): void {
    const examples = problems.slice(0, maxExamples).map(visibleText)
    const report = left_out === 0 ? undefined : JSON.stringify([left_out, examples])
    if (this.#reported.get(backend) === report) return
    if (report === undefined) this.#reported.delete(backend)
    else this.#reported.set(backend, report)
    this.#parts.events.emit('items_withheld', { backend, left_out, examples })
  }
}
