/**
 * Determines which era a backend speaks: with the first request, and again when the backend rejects a request as one
 * of the wrong era (after an upgrade or a rollback).
 *
 * Callers share a probe only when its outcome depends on the same credentials. A rejected probe decides nothing for
 * other callers.
 */
import type { Era } from '../../../mcp/index.ts'
import type { AnySignal } from '../../../net/index.ts'
import { credentialKey } from '../../model/identity.ts'
import { Flights } from '../flights.ts'
import { probeEra, type ProbedEra } from './probe.ts'
import { WrongEra } from '../session-era/channel.ts'
import type { Sender } from '../transport/target.ts'
import type { BackendSettings } from '../settings.ts'

export class BackendEra {
  readonly #settings: BackendSettings
  readonly #info: string
  readonly #onChange: (era: Era) => void
  readonly #probes = new Flights<ProbedEra>()
  /** `unknown` until a probe or a request has determined it. */
  found: ProbedEra

  /** `info`: raw JSON of our own `Implementation`. */
  constructor(settings: BackendSettings, info: string, onChange: (era: Era) => void) {
    this.#settings = settings
    this.#info = info
    this.#onChange = onChange
    this.found = settings.transport === 'sse' ? 'session' : 'unknown'
  }

  /** Runs `work` in the backend's era, and once more in the other era when the backend has switched to it. */
  async run<T>(sender: Sender, signal: AnySignal, work: (era: Era) => Promise<T>): Promise<T> {
    const era = this.found === 'unknown' ? await this.probed(sender, signal) : this.found
    try {
      return await work(era)
    } catch (error) {
      return await this.retried(error, { era, sender, signal }, work)
    }
  }

  /**
   * Runs `work` in the other era when an error in `era` shows that the backend has switched: the rejected request was
   * not executed. Otherwise rejects with the error.
   */
  async retried<T>(
    error: unknown,
    { era, sender, signal }: { readonly era: Era; readonly sender: Sender; readonly signal: AnySignal },
    work: (era: Era) => Promise<T>,
  ): Promise<T> {
    if (!(error instanceof WrongEra) || !(await this.#mayHaveChanged(era, sender, signal))) throw error
    const other = era === 'session' ? 'stateless' : 'session'
    // Only a stateless backend identifies itself. The result `session` may come from a rejection of this caller
    // alone, so it applies to all callers only after a request has succeeded in that era.
    if (other === 'stateless') this.#become(other)
    const result = await work(other)
    this.#become(other)
    return result
  }

  /** Determines the era with a probe. */
  async probed(sender: Sender, signal: AnySignal): Promise<Era> {
    const found = await this.#probe(sender, signal)
    // An inconclusive probe must not overwrite what another caller's probe has found in the meantime.
    if (this.found === 'unknown') this.found = found
    return this.found === 'stateless' ? 'stateless' : 'session'
  }

  /** The probe has its own time limit, so that one caller's cancellation does not end it for other callers. */
  #probe(sender: Sender, signal: AnySignal): Promise<ProbedEra> {
    const { target, perCaller, timeoutMs } = this.#settings
    return this.#probes.run(perCaller ? credentialKey(sender) : '', signal, () =>
      probeEra(target, this.#info, sender, AbortSignal.timeout(timeoutMs)),
    )
  }

  async #mayHaveChanged(era: Era, sender: Sender, signal: AnySignal): Promise<boolean> {
    if (this.#settings.transport === 'sse') return false
    if (this.found !== 'unknown' && this.found !== era) return true
    const found = await this.#probe(sender, signal)
    return found !== 'unknown' && found !== era
  }

  #become(era: Era): void {
    if (this.found === era) return
    this.found = era
    this.#onChange(era)
  }
}
