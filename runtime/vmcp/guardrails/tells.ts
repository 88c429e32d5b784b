/** Tells what guardrails found: metric, event and audit line. Never what it was. */
import {
  annotateDenial,
  annotateGuardrail,
  type Events,
  type Instruments,
  visibleText,
} from '../../observe/index.ts'
import type { GuardrailDecision } from './guard.ts'

export interface GuardrailTells {
  readonly server: string
  readonly telemetry: Instruments
  readonly events: Events
}

const maxName = 128

export function tellGuardrails({
  server,
  telemetry,
  events,
}: GuardrailTells): (decision: GuardrailDecision) => void {
  return function tell({ method, backend, original, direction, finding, error }) {
    const call = { direction, backend, method, item: shown(original) }
    if (!finding) {
      events.emit('guardrail_failed', { ...call, err: error })
      annotateDenial('guardrail_failed')
      annotateGuardrail({ rule: undefined, direction, outcome: 'failed', count: 1 })
      if (telemetry.enabled) telemetry.metrics.guardrailFailures(1, { server, direction })
      return
    }
    const { rule, outcome, count } = finding
    events.emit('guardrail_matched', { ...call, rule, outcome, count })
    if (outcome === 'refused') annotateDenial('guardrail_refused')
    annotateGuardrail({ rule, direction, outcome, count })
    if (telemetry.enabled) telemetry.metrics.guardrailMatches(count, { server, rule, direction, outcome })
  }
}

function shown(name: string | undefined): string | undefined {
  return name === undefined ? undefined : visibleText(name.slice(0, maxName)).slice(0, maxName)
}
