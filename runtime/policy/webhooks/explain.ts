/** Lists the webhooks that would be called, for operators, without calling them. */
import type { RuntimeWebhook, RuntimeWebhooks } from '../../../schemas/index.ts'
import { type Action, methodOf, type Origin } from '../requests.ts'
import { matches } from './subject.ts'

/** Returns one line per webhook, in call order. */
export function explainWebhooks(
  { mutating = [], validating = [] }: RuntimeWebhooks,
  action: Action,
  origin: Origin | undefined,
): readonly string[] {
  const all = [
    ...mutating.map((webhook) => ({ webhook, kind: 'mutating' })),
    ...validating.map((webhook) => ({ webhook, kind: 'validating' })),
  ]
  return (['request', 'response'] as const).flatMap((phase) =>
    all
      .filter(({ webhook }) => matches(webhook, phase, methodOf[action], origin))
      .map(({ webhook, kind }) => `${phase}: ${webhook.name} (${kind}${effectOf(webhook)})`),
  )
}

function effectOf({ mode, failurePolicy }: RuntimeWebhook): string {
  if (mode === 'audit') return ', audit only'
  return failurePolicy === 'ignore' ? ', ignored on failure' : ''
}
