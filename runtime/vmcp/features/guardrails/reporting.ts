/** Reports guardrail findings as a metric, an event and an audit record. Reports never contain the matched text. */
import {
  annotateDenial,
  annotateGuardrail,
  type Events,
  type Instruments,
  visibleText,
} from '../../../observe/index.ts'
import type { GuardrailDecision } from './guard.ts'

export interface GuardrailReporting {
  readonly server: string
  readonly telemetry: Instruments
  readonly events: Events
}

const maxName = 128

/** Reports findings in a call and adds the findings to the call's audit record. */
export function reportGuardrails(reporting: GuardrailReporting): (decision: GuardrailDecision) => void {
  return function report(decision) {
    reportFinding(reporting, decision)
    const { direction, finding } = decision
    if (!finding) {
      annotateDenial('guardrail_failed')
      annotateGuardrail({ rule: undefined, direction, outcome: 'failed', count: 1 })
      return
    }
    const { rule, outcome, count } = finding
    if (outcome === 'refused') annotateDenial('guardrail_refused')
    annotateGuardrail({ rule, direction, outcome, count })
  }
}

/** Reports a finding that is not part of a call. */
export function reportFinding(
  { server, telemetry, events }: GuardrailReporting,
  { method, backend, original, direction, finding, error }: GuardrailDecision,
): void {
  const call = { direction, backend, method, item: shown(original) }
  if (!finding) {
    events.emit('guardrail_failed', { ...call, err: error })
    if (telemetry.enabled) telemetry.metrics.guardrailFailures(1, { server, direction })
    return
  }
  const { rule, outcome, count } = finding
  events.emit('guardrail_matched', { ...call, rule, outcome, count })
  if (telemetry.enabled) telemetry.metrics.guardrailMatches(count, { server, rule, direction, outcome })
}

function shown(name: string | undefined): string | undefined {
  return name === undefined ? undefined : visibleText(name.slice(0, maxName)).slice(0, maxName)
}
