/**
 * Builds the configured checks between an authenticated request and the core: webhooks, authorization, rate limits and
 * quotas.
 *
 * A configuration change creates new guards. Earlier decisions about requests in flight remain valid.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth (incomingAuth.authz, rateLimiting);
 * ARCHITECTURE.md, "A tool call".
 */
import { GatehouseError, subjectPrefixOf } from '../../../schemas/index.ts'
import type { VmcpConfig } from '../../config/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import { foreignGroupRemover, groupClaimsOf } from '../../incoming/index.ts'
import type { Caller, Log } from '../../net/index.ts'
import { type Events, rateLimitRecorder, type Instruments } from '../../observe/index.ts'
import type { UpstreamTokens } from '../../outgoing/index.ts'
import {
  type Gate,
  externalPoint,
  makeAuthorizer,
  makeExternalGate,
  makeShadowAuthorizer,
  makeGate,
  makeRateLimiter,
  type RateLimiter,
  type RateLimitEvent,
  type UpstreamTokenSource,
  makeWebhookChain,
  type WebhookChain,
} from '../../policy/index.ts'
import type { Store } from '../../store/index.ts'
import { decisionPointReporter } from './reports/decisions.ts'
import { webhookReporter } from './reports/webhooks.ts'
import type { Clock } from '../model/time/clock.ts'
import { type QuotaGuard, quotaGuard } from '../features/quotas/guard.ts'

export interface Guards {
  /** Undefined if no authorization is configured. */
  readonly gate: Gate | undefined
  /** Settings for an external gate, used to detect changes. Undefined for other gates. */
  readonly external?: string | undefined
  readonly limiter: RateLimiter | undefined
  /** Undefined if no quotas are configured. */
  readonly quotas?: QuotaGuard | undefined
  /** Undefined if no webhooks are configured. */
  readonly webhooks?: WebhookChain | undefined
  /** Webhook settings, used to detect changes. */
  readonly webhookSettings?: string | undefined
}

export interface GuardParts {
  /** The shared store. Rate limits require this store. */
  readonly store: Store | undefined
  /** Store for the quota counters. */
  readonly counters: Store
  readonly clock: Clock
  /** Namespace for the keys of rate limits and quotas. */
  readonly namespace: string
  /** Environment variables to which the settings refer. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly upstreamTokens: UpstreamTokens | undefined
  readonly telemetry: Instruments
  readonly events: Events
  /** The previous guards. External gates, webhooks and quotas are kept as long as their settings are unchanged. */
  readonly before?: Guards | undefined
  /** True for tools that callers may use because the tools' feature is enabled. */
  readonly isGranted: (tool: string) => boolean
  readonly log: Log
}

/** Builds the guards. Throws an INVALID_CONFIG error that names the invalid setting. */
export function makeGuards(config: VmcpConfig, parts: GuardParts): Guards {
  const external = externalSettings(config)
  const isSame = external !== undefined && parts.before?.external === external
  const gate = isSame ? parts.before?.gate : gateOf(config, parts)
  return {
    gate,
    external,
    limiter: limiterOf(config, parts),
    quotas: quotaGuard(config, parts, parts.before?.quotas),
    ...webhooksOf(config, parts),
  }
}

/** Returns the previous webhooks and their state if the settings are unchanged. */
function webhooksOf(
  { name, webhooks }: VmcpConfig,
  parts: GuardParts,
): Pick<Guards, 'webhooks' | 'webhookSettings'> {
  if (!webhooks) return { webhooks: undefined, webhookSettings: undefined }
  const webhookSettings = JSON.stringify([name, webhooks])
  const { before, namespace, env, log } = parts
  if (before?.webhookSettings === webhookSettings) return { webhooks: before.webhooks, webhookSettings }
  const observe = webhookReporter({ server: name, ...parts })
  return {
    webhooks: makeWebhookChain(webhooks, { server: name, namespace, env, observe, log }),
    webhookSettings,
  }
}

function externalSettings({ name, incomingAuth: { authz, issuers } }: VmcpConfig): string | undefined {
  return externalPoint(authz) ? JSON.stringify([name, authz, issuers]) : undefined
}

/** Closes the parts of the guards that the new guards, `after`, do not share. */
export async function closeGuards({ gate, webhooks, quotas }: Guards, after?: Guards): Promise<void> {
  // Close the old quotas before the new quotas report anything.
  const quotasClosed = quotas === after?.quotas ? undefined : quotas?.close({ replaced: after !== undefined })
  if (gate !== after?.gate) await gate?.close?.()
  if (webhooks !== after?.webhooks) await webhooks?.close()
  await quotasClosed
}

/** True if decisions require the policy engine. */
export function usesEngine({ incomingAuth }: VmcpConfig): boolean {
  return incomingAuth.authz?.type === 'cedar'
}

function gateOf({ name, incomingAuth }: VmcpConfig, parts: GuardParts): Gate | undefined {
  const { upstreamTokens, isGranted, events, log } = parts
  const { authz } = incomingAuth
  if (authz?.type !== 'cedar') {
    return makeExternalGate(authz, {
      serverName: name,
      upstreamTokens: policyTokens(upstreamTokens, incomingAuth),
      observe: decisionPointReporter(name, parts),
      log,
    })
  }
  const authorizer = makeAuthorizer(authz, {
    serverName: name,
    upstreamTokens: policyTokens(upstreamTokens, incomingAuth),
    engineFailed: (err) => events.emit('policy_engine_failed', { err }),
    log,
  })
  const shadow = makeShadowAuthorizer(authz, {
    serverName: name,
    upstreamTokens: policyTokens(upstreamTokens, incomingAuth),
  })
  return makeGate(authorizer, { unknownMethods: 'pass', granted: isGranted, shadow })
}

/**
 * Returns the token source for policies. Prefers a `required` source, because policies deny requests without a token
 * from that source.
 */
function policyTokens(
  tokens: UpstreamTokens | undefined,
  { issuers = [], authz }: VmcpConfig['incomingAuth'],
): UpstreamTokenSource | undefined {
  if (!tokens) return undefined
  const get = tokens.required ?? tokens.get
  return {
    reserved: issuers.map(subjectPrefixOf),
    ownGroups: foreignGroupRemover(issuers, groupClaimsOf(authz)),
    get: (caller, provider, signal) => get.call(tokens, caller, provider, signal),
  }
}

function limiterOf({ name, rateLimiting }: VmcpConfig, parts: GuardParts): RateLimiter | undefined {
  if (!rateLimiting) return undefined
  const { store, namespace, telemetry, events } = parts
  if (!store)
    throw new GatehouseError('INVALID_CONFIG', {
      detail: 'rateLimiting: requires sessionStorage with provider redis',
    })
  const record = rateLimitRecorder(telemetry.metrics, { namespace, server: name })
  const observe = (event: RateLimitEvent): void => {
    record(event)
    reportLimit(events, event)
  }
  return makeRateLimiter({ config: rateLimiting, store, namespace, server: name, observe })
}

function reportLimit(events: Events, event: RateLimitEvent): void {
  if (event.kind === 'decision' && event.decision === 'rejected')
    events.emit('call_limited', { scope: event.scope, operation_type: event.operationType })
  else if (event.kind === 'store_down')
    events.emit('limits_store', { up: false, calls: event.calls, err: event.error })
  else if (event.kind === 'store_up') events.emit('limits_store', { up: true })
}

/** Returns a function that checks whether a caller may use one of Gatehouse's own tools. */
export function makePermissionCheck(guards: () => Guards) {
  return async function permits(caller: Caller, tool: string, signal: AbortSignal): Promise<boolean> {
    const params = new JsonObject(Buffer.from(JSON.stringify({ name: tool })))
    try {
      await guards().gate?.check(caller, 'tools/call', params, { signal })
      return true
    } catch (error) {
      if (error instanceof GatehouseError && error.code === 'FORBIDDEN') return false
      throw error
    }
  }
}
