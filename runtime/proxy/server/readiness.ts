/**
 * Whether this proxy can serve just now, for `/readyz`: not while it is ending, not without the login it needs, not when
 * the authorization server that it hosts cannot work, and not when its target has been out of reach, or has refused its
 * sessions, for several requests in a row.
 *
 * The target is not asked as long as requests reach it. Once it is taken for lost, a question about readiness asks it,
 * not more often than every few seconds, so that a proxy that gets no more traffic finds its way back. Sessions cannot be
 * asked for without one: after half a minute the proxy counts as ready again, until the next one fails. Reasons are fixed
 * texts or messages meant for clients; they name no addresses.
 * Source: reference behaviour of target health, as readiness instead of an exit.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { TargetAddress } from '../../config/index.ts'
import type { TargetWatch } from '../forward/forwarder.ts'
import type { EmbeddedAuthServer } from '../../incoming/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import type { TokenSource } from '../model/credential.ts'

const maxFailures = 5
const askTimeoutMs = 5_000
const askEveryMs = 5_000
/** After so long without a session that failed, the next one may try. */
const sessionTrialMs = 30_000

export interface Readiness extends TargetWatch {
  /** Undefined: ready. */
  notReady(): Promise<string | undefined>
  /** From now on not ready. */
  end(): void
}

export interface ReadinessParts {
  readonly target: TargetAddress
  readonly dispatcher: Dispatcher
  /** The login without which requests are refused. */
  readonly login?: Pick<TokenSource, 'token'> | undefined
  /** The authorization server without which nobody gets a token for this proxy. */
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
      // Still lost.
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
      if (ending) return 'the proxy is ending'
      try {
        await login?.token()
      } catch (error) {
        return error instanceof GatehouseError ? error.message : 'the login is not complete'
      }
      const reasons = await authServer?.notReady()
      if (reasons !== undefined && reasons.length > 0) return reasons.join('; ')
      if (await targetLost()) return 'the target does not answer'
      const sessionsFail = failedSessions >= maxFailures && now() - sessionFailedAt < sessionTrialMs
      return sessionsFail ? 'the target does not open its lost sessions again' : undefined
    },
  }
}
