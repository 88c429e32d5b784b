/** Provides the current guard. Creates a new guard only when the settings change. */
import type { VmcpConfig } from '../../../config/index.ts'
import type { Events, Instruments, RecordMask } from '../../../observe/index.ts'
import { Guard, type GuardrailParts } from './guard.ts'
import { recordMask } from './recorded.ts'
import { compileMarks } from './marks.ts'
import { compileRules } from './rules.ts'
import { compileSizes } from './sizes.ts'
import { reportGuardrails } from './reporting.ts'

export interface CurrentGuardParts extends Pick<GuardrailParts, 'matcherFor'> {
  readonly events: Events
  readonly observation: {
    readonly telemetry: Instruments
    /** Masks call records with the same rules. */
    readonly mask: RecordMask
  }
}

export class CurrentGuard {
  readonly #parts: GuardrailParts
  readonly #mask: RecordMask
  #settings: string | undefined
  #guard: Guard | undefined

  constructor(server: string, { events, matcherFor, observation: { telemetry, mask } }: CurrentGuardParts) {
    this.#parts = { matcherFor, observe: reportGuardrails({ server, telemetry, events }) }
    this.#mask = mask
  }

  /** Returns undefined if no guardrails are configured. */
  for({ guardrails }: VmcpConfig): Guard | undefined {
    const settings = JSON.stringify(guardrails)
    if (settings === this.#settings) return this.#guard
    const redact = compileRules(guardrails?.redact ?? [])
    const sizes = compileSizes(guardrails?.sizes ?? [])
    this.#guard =
      guardrails && new Guard({ redact, sizes, ...compileMarks(guardrails.mark ?? []) }, this.#parts)
    this.#mask.replace(redact.length > 0 ? recordMask(redact) : undefined)
    this.#settings = settings
    return this.#guard
  }
}
