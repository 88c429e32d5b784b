/** Reports the responses and the state of webhooks in metrics, events and audit lines. */
import { annotateDenial, annotateWebhook, type Events, type Instruments } from '../../../observe/index.ts'
import type { WebhookEvent } from '../../../policy/index.ts'

export interface WebhookReporterOptions {
  readonly server: string
  readonly telemetry: Instruments
  readonly events: Events
}

export function webhookReporter({
  server,
  telemetry,
  events,
}: WebhookReporterOptions): (event: WebhookEvent) => void {
  return function reportWebhook(event) {
    if (event.kind !== 'decision') {
      const { webhook, ignored, reason, replaced } = event
      events.emit('webhook_state', { webhook, up: event.kind === 'up', ignored, reason, replaced })
      return
    }
    const { webhook, phase, outcome, enforced, reason, ms, method } = event.decision
    const isFailure = event.error !== undefined
    if (isFailure)
      events.emit('webhook_failed', { webhook, phase, reason: outcome, refused: enforced, err: event.error })
    else if (outcome === 'denied') events.emit('webhook_denied', { webhook, phase, method, reason, enforced })
    if (enforced && (isFailure || outcome === 'denied'))
      annotateDenial(isFailure ? 'webhook_failed' : 'webhook_denied')
    annotateWebhook({ name: webhook, phase, outcome, enforced: enforced ? undefined : false, reason })
    if (!telemetry.enabled) return
    telemetry.metrics.webhookCalls(1, { server, webhook, phase, outcome })
    telemetry.metrics.webhookDuration(ms / 1000, { server, webhook })
  }
}
