/**
 * Decides for `/readyz` whether this proxy can serve requests. The proxy is not ready while it shuts down, while a
 * required login is missing, or while its embedded authorization server cannot work. Nor is it ready after several
 * consecutive requests in which the target was unreachable or lost its sessions.
 *
 * The target is not probed while requests reach it. Once the target is considered unreachable, readiness requests probe
 * it, at most every few seconds, so that a proxy without traffic recovers. Sessions cannot be probed without a client:
 * after half a minute the proxy is ready again until the next failure. Reasons are fixed text or client-facing
 * messages, without addresses.
 * Source: reference behavior of target health, as readiness instead of an exit.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { TargetAddress } from '../../config/index.ts'
import type { TargetWatch } from '../forward/forwarder.ts'
import type { EmbeddedAuthServer } from '../../incoming/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import type { TokenSource } from '../../outgoing/index.ts'

const maxFailures = 5
const askTimeoutMs = 5_000
const askEveryMs = 5_000
/** After this time without a failed session, the proxy is ready again. */
const sessionTrialMs = 30_000

export interface Readiness extends TargetWatch {
  /** Returns the reason why the proxy is not ready; undefined when it is ready. */
  notReady(): Promise<string | undefined>
  /** Permanently marks the proxy as not ready. */
  end(): void
}

export interface ReadinessParts {
  readonly target: TargetAddress
  readonly dispatcher: Dispatcher
  /** The required login; without it requests are rejected. */
  readonly login?: Pick<TokenSource, 'token'> | undefined
  /** The authorization server that issues the tokens for this proxy. */
  readonly authServer?: Pick<EmbeddedAuthServer, 'notReady'> | undefined
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

export function makeReadiness(parts: ReadinessParts): Readiness {
  const { target, dispatcher, login, authServer, now = () => performance.now() } = parts
  let ending = false
  let failures = 0
  let failedSessions = 0
  let sessionFailedAt = 0
  let asked: { readonly at: number; readonly done: Promise<void> } | undefined

  async function ask(): Promise<void> {
    try {
      const { body } = await dispatcher.request({
        origin: target.origin,
        path: target.path ?? '/mcp',
        method: 'HEAD',
        signal: AbortSignal.timeout(askTimeoutMs),
      })
      await body.dump()
      failures = 0
    } catch {
      // The target is still unreachable.
    }
  }

  async function targetLost(): Promise<boolean> {
    if (failures < maxFailures) return false
    if (asked === undefined || now() - asked.at >= askEveryMs) asked = { at: now(), done: ask() }
    await asked.done
    return failures >= maxFailures
  }

  return {
    responded() {
      failures = 0
    },
    unreachable() {
      failures++
    },
    sessionWorks() {
      failedSessions = 0
    },
    sessionFailed() {
      failedSessions++
      sessionFailedAt = now()
    },
    end() {
      ending = true
    },
    async notReady() {
      if (ending) return 'the proxy is shutting down'
      try {
        await login?.token()
      } catch (error) {
        return error instanceof GatehouseError ? error.message : 'the login is not complete'
      }
      const reasons = await authServer?.notReady()
      if (reasons !== undefined && reasons.length > 0) return reasons.join('; ')
      if (await targetLost()) return 'the target does not respond'
      const sessionsFail = failedSessions >= maxFailures && now() - sessionFailedAt < sessionTrialMs
      return sessionsFail ? 'the target does not reopen lost sessions' : undefined
    },
  }
}
