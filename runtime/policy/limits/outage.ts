/**
 * Calls a shared store that may be down. Uses a timeout, and pauses after a failure, so calls do not wait for the store
 * each time. Reports outages and recovery. The caller decides whether calls are allowed during an outage.
 */
import { GatehouseError, ModuleError } from '../../../schemas/index.ts'
import { withTimeout } from '../../net/index.ts'

export type StoreErrorType = 'timeout' | 'connection' | 'auth' | 'other'

export type OutageEvent =
  | { readonly kind: 'checked'; readonly milliseconds: number }
  | { readonly kind: 'store_error'; readonly errorType: StoreErrorType }
  /** The store has become unavailable, or is available again. */
  | { readonly kind: 'store_down'; readonly calls: 'allowed' | 'refused'; readonly error: unknown }
  | { readonly kind: 'store_up' }

export interface OutageOptions {
  /** How calls are handled during an outage, for `store_down`. */
  readonly calls: 'allowed' | 'refused'
  /** Time limit for a call to the store. Defaults to 1 s. */
  readonly timeoutMs?: number | undefined
  /** Returns the time in milliseconds. */
  readonly now: () => number
  readonly observe: (event: OutageEvent) => void
}

/** `error` is undefined when the call was skipped because of a recent failure. */
export type StoreAnswer<T> = { readonly value: T } | { readonly error: unknown }

export interface Outage {
  /** Calls the store. Never rejects. */
  ask<T>(work: () => Promise<T>): Promise<StoreAnswer<T>>
}

const defaultTimeoutMs = 1_000
/** Pause after a failure. */
const pauseMs = 1_000

export function makeOutage({ calls, timeoutMs = defaultTimeoutMs, now, observe }: OutageOptions): Outage {
  let downUntil: number | undefined

  function isPausing(): boolean {
    const leftMs = downUntil === undefined ? 0 : downUntil - now()
    // A remaining time longer than the pause means that the clock was set back.
    return leftMs > 0 && leftMs <= pauseMs
  }

  function answered(startedAt: number): void {
    observe({ kind: 'checked', milliseconds: Math.max(0, now() - startedAt) })
    if (downUntil === undefined) return
    downUntil = undefined
    observe({ kind: 'store_up' })
  }

  function failed(error: unknown): void {
    if (downUntil === undefined) observe({ kind: 'store_down', calls, error })
    downUntil = now() + pauseMs
    observe({ kind: 'store_error', errorType: errorTypeOf(error) })
  }

  return {
    async ask(work) {
      if (isPausing()) return { error: undefined }
      const startedAt = now()
      try {
        const value = await withTimeout(timeoutMs, work(), () => {
          throw new Timeout('the store did not respond in time')
        })
        answered(startedAt)
        return { value }
      } catch (error) {
        failed(error)
        return { error }
      }
    },
  }
}

class Timeout extends ModuleError {}

function errorTypeOf(error: unknown): StoreErrorType {
  if (error instanceof Timeout) return 'timeout'
  const { cause, code } = (error instanceof GatehouseError ? error : {}) as { cause?: unknown; code?: string }
  const text = cause instanceof Error ? cause.message : ''
  if (/^(NOAUTH|WRONGPASS|NOPERM)/.test(text)) return 'auth'
  return code === 'STORE_DOWN' ? 'connection' : 'other'
}
