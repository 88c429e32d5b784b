/**
 * Reports decisions of policies and of an external decision point in metrics, events and audit lines. Clients do not
 * see these reports.
 */
import type { DecisionReport, Facts, PointEvent } from '../../../policy/index.ts'
import {
  type AuditTrail,
  type Events,
  type Observer,
  type PolicyRecord,
  type Instruments,
  visibleText,
} from '../../../observe/index.ts'
import type { AuthorizeOptions } from '../authorize.ts'
import type { Core } from '../core.ts'

export interface DecisionParts {
  readonly server: string
  readonly telemetry: Instruments
  readonly events: Events
  readonly audit: AuditTrail
  readonly observer: Observer
  readonly core: () => Pick<Core, 'peekFacts'>
}

const maxName = 128

export function decisionReporter(parts: DecisionParts): NonNullable<AuthorizeOptions['onDecision']> {
  const { server, telemetry, events, audit, observer, core } = parts
  return function reportDecision(operation, decision, report) {
    if (telemetry.enabled) telemetry.metrics.authorizationDecisions(1, { server, decision })
    if (decision === 'denied') {
      const { reason, missing } = report?.verdict ?? {}
      events.emit('call_denied', {
        method: operation.method,
        item: shownName(report?.request.id ?? operation.params.text('name')),
        policies: reason && reason.length > 0 ? reason : undefined,
        missing: missing && missing.length > 0 ? missing : undefined,
      })
    }
    if (!report) return
    if (telemetry.enabled && report.shadow)
      telemetry.metrics.authorizationShadowDecisions(1, { server, outcome: shadowOutcome(report) })
    if (!observer.enabled) return
    const record = policyRecord(report, audit, () => core().peekFacts(operation.client, report.request))
    if (operation.context.onDecision) operation.context.onDecision(record)
    else observer.policy(record)
  }
}

/** Returns the reporter for the decision point's responses and for changes in its availability. */
export function decisionPointReporter(
  server: string,
  { telemetry, events }: Pick<DecisionParts, 'telemetry' | 'events'>,
): (event: PointEvent) => void {
  return function reportPointEvent(event) {
    if (event.kind === 'up' || event.kind === 'down') {
      const replaced = event.kind === 'up' ? event.replaced : undefined
      events.emit('decision_point', { up: event.kind === 'up', reason: reasonOf(event), replaced })
      return
    }
    if (event.kind === 'failure') events.emit('decision_failed', { reason: event.reason, err: event.error })
    if (!telemetry.enabled) return
    telemetry.metrics.decisionPointAnswers(1, { server, outcome: pointOutcome(event) })
    if (event.ms > 0) telemetry.metrics.decisionPointDuration(event.ms / 1000, { server })
  }
}

function reasonOf(event: PointEvent): string | undefined {
  return 'reason' in event ? event.reason : undefined
}

function pointOutcome(event: Extract<PointEvent, { kind: 'decision' | 'failure' }>): string {
  if (event.kind === 'failure') return event.reason
  return `${event.cached ? 'cached_' : ''}${event.allow ? 'allow' : 'deny'}`
}

function shownName(name: string | undefined): string | undefined {
  return name === undefined ? undefined : visibleText(name.slice(0, maxName)).slice(0, maxName)
}

function shadowOutcome({ allowed, shadow }: DecisionReport): string {
  if (!shadow || shadow.allowed === allowed) return 'same'
  return shadow.allowed ? 'would_allow' : 'would_deny'
}

function policyRecord(
  report: DecisionReport,
  { policyInputs }: Pick<AuditTrail, 'policyInputs'>,
  peek: () => Facts | undefined,
): PolicyRecord {
  const { request, allowed, verdict, digest, shadow } = report
  const differs = shadow !== undefined && shadow.allowed !== allowed
  return {
    id: request.id,
    decision: allowed ? 'allow' : 'deny',
    reason: verdict.reason,
    errors: verdict.errors,
    missing: verdict.missing,
    setDigest: digest,
    shadow: differs
      ? { decision: shadow.allowed ? 'allow' : 'deny', reason: shadow.verdict.reason }
      : undefined,
    origin() {
      const { backend, original } = request.origin ?? peek()?.origin ?? {}
      return { backend: backend === '' ? undefined : backend, original }
    },
    inputs: () => (policyInputs === 'none' ? undefined : inputsJson(report, policyInputs, peek())),
  }
}

/** Returns undefined if the request cannot be read. In that case, a policy has already denied the request. */
function inputsJson(
  { inputs }: DecisionReport,
  mode: 'read' | 'all',
  facts: Facts | undefined,
): string | undefined {
  try {
    return JSON.stringify(inputs(mode, facts))
  } catch {
    return undefined
  }
}
