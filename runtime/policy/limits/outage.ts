/**
 * Asks a shared store that may be away: within a time, and after a failure not again for a while, so that no call waits for
 * it each time. Says when it goes and when it is back; what becomes of calls meanwhile is the business of whoever asks.
 */
import { GatehouseError, ModuleError } from '../../../schemas/index.ts'
import { atMost } from '../../net/index.ts'

export type StoreErrorType = 'timeout' | 'connection' | 'auth' | 'other'

export type OutageEvent =
  | { readonly kind: 'checked'; readonly milliseconds: number }
  | { readonly kind: 'store_error'; readonly errorType: StoreErrorType }
  /** The store cannot be asked from now on, or can be again. */
  | { readonly kind: 'store_down'; readonly calls: 'allowed' | 'refused'; readonly error: unknown }
  | { readonly kind: 'store_up' }

export interface OutageOptions {
  /** What becomes of calls while the store is away, for `store_down`. */
  readonly calls: 'allowed' | 'refused'
  /** How long a call waits for the store. Default 1 s. */
  readonly timeoutMs?: number | undefined
  /** Milliseconds. */
  readonly now: () => number
  readonly observe: (event: OutageEvent) => void
}

/** `error` undefined: it was not asked, because it failed a moment ago. */
export type StoreAnswer<T> = { readonly value: T } | { readonly error: unknown }

export interface Outage {
  /** Never rejects. */
  ask<T>(work: () => Promise<T>): Promise<StoreAnswer<T>>
}

const defaultTimeoutMs = 1_000
/** After a failure the store is left alone for so long. */
const pauseMs = 1_000

export function makeOutage({ calls, timeoutMs = defaultTimeoutMs, now, observe }: OutageOptions): Outage {
  let downUntil: number | undefined

  function isPausing(): boolean {
    const leftMs = downUntil === undefined ? 0 : downUntil - now()
    // More than the pause: the clock went back.
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
        const value = await atMost(timeoutMs, work(), () => {
          throw new Timeout('the store did not answer in time')
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
