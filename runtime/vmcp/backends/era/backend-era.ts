/**
 * Determines which protocol era a backend uses. The era is determined before the first request, and again when the
 * backend rejects a request because of its era, which happens after an upgrade or a rollback.
 *
 * Callers share a probe only if its outcome depends on the same credentials. A rejected probe has no effect on other
 * callers.
 */
import type { Era } from '../../../mcp/index.ts'
import type { AnySignal } from '../../../net/index.ts'
import { credentialKey } from '../../model/identity.ts'
import { Flights } from '../flights.ts'
import { probeEra, type ProbedEra } from './probe.ts'
import { WrongEra } from '../session-era/channel.ts'
import type { Sender } from '../transport/target.ts'
import type { BackendSettings } from '../settings.ts'

/** Eras of transports that need no probe. A REST service has no sessions. */
const fixedEras: Readonly<Record<string, Era>> = { sse: 'session', openapi: 'stateless' }

export class BackendEra {
  readonly #settings: BackendSettings
  readonly #info: string
  readonly #onChange: (era: Era) => void
  readonly #probes = new Flights<ProbedEra>()
  /** The current era. `unknown` until a probe or a request has determined the era. */
  current: ProbedEra

  /** `info` is the raw JSON of Gatehouse's `Implementation`. */
  constructor(settings: BackendSettings, info: string, onChange: (era: Era) => void) {
    this.#settings = settings
    this.#info = info
    this.#onChange = onChange
    this.current = fixedEras[settings.transport] ?? 'unknown'
  }

  /** Runs `work` in the backend's era. Runs `work` again in the other era if the backend has switched eras. */
  async run<T>(sender: Sender, signal: AnySignal, work: (era: Era) => Promise<T>): Promise<T> {
    const era = this.current === 'unknown' ? await this.determine(sender, signal) : this.current
    try {
      return await work(era)
    } catch (error) {
      return await this.retryInOtherEra(error, { era, sender, signal }, work)
    }
  }

  /**
   * Runs `work` in the other era if an error in `era` shows that the backend has switched. The second run is safe
   * because the backend did not execute the rejected request. Otherwise, rejects with the error.
   */
  async retryInOtherEra<T>(
    error: unknown,
    { era, sender, signal }: { readonly era: Era; readonly sender: Sender; readonly signal: AnySignal },
    work: (era: Era) => Promise<T>,
  ): Promise<T> {
    if (!(error instanceof WrongEra) || !(await this.#mayHaveChanged(era, sender, signal))) throw error
    const other = era === 'session' ? 'stateless' : 'session'
    // Only a stateless backend identifies its era. A `session` result may also mean that the backend rejects only this
    // caller. The result therefore applies to all callers only after a request has succeeded in the session era.
    if (other === 'stateless') this.#setEra(other)
    const result = await work(other)
    this.#setEra(other)
    return result
  }

  /** Determines the era by probing the backend. */
  async determine(sender: Sender, signal: AnySignal): Promise<Era> {
    const found = await this.#probe(sender, signal)
    // An inconclusive probe must not overwrite the result of another caller's probe.
    if (this.current === 'unknown') this.current = found
    return this.current === 'stateless' ? 'stateless' : 'session'
  }

  /** The probe has its own time limit, so other callers are not affected when one caller cancels. */
  #probe(sender: Sender, signal: AnySignal): Promise<ProbedEra> {
    const { target, perCaller, timeoutMs } = this.#settings
    return this.#probes.run(perCaller ? credentialKey(sender) : '', signal, () =>
      probeEra(target, this.#info, sender, AbortSignal.timeout(timeoutMs)),
    )
  }

  async #mayHaveChanged(era: Era, sender: Sender, signal: AnySignal): Promise<boolean> {
    if (fixedEras[this.#settings.transport] !== undefined) return false
    if (this.current !== 'unknown' && this.current !== era) return true
    const found = await this.#probe(sender, signal)
    return found !== 'unknown' && found !== era
  }

  #setEra(era: Era): void {
    if (this.current === era) return
    this.current = era
    this.#onChange(era)
  }
}
