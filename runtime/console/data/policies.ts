/** The policies in force, and how often each decided. */
import type { Policies } from '../api.ts'
import type { CallRecorder } from '../calls/recorder.ts'
import type { ConsoleView } from '../view.ts'

export function policiesPage(view: ConsoleView, recorder: CallRecorder): Policies {
  const texts = view.policies()
  const decisionPoint = view.decisionPoint?.()
  return {
    enabled: texts !== undefined || decisionPoint !== undefined,
    ...(decisionPoint === undefined ? {} : { decisionPoint }),
    items: (texts ?? []).map((text, i) => {
      const id = `policies[${i}]`
      return { id, effect: effectOf(text), text, decided: recorder.decidedBy(id) }
    }),
    problems: view
      .problems()
      .filter(({ type }) => type === 'policy_engine_failed' || type === 'decision_point')
      .map(({ message }) => message),
  }
}

/** Comments and annotations may stand before it. */
function effectOf(text: string): 'permit' | 'forbid' {
  const bare = text.replaceAll(/\/\/[^\n]*/g, '')
  const permit = bare.search(/\bpermit\s*\(/)
  const forbid = bare.search(/\bforbid\s*\(/)
  return forbid >= 0 && (permit < 0 || forbid < permit) ? 'forbid' : 'permit'
}
