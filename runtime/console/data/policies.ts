/** The current policies with their decision counts. */
import type { Policies } from '../api.ts'
import type { CallRecorder } from '../calls/recorder.ts'
import type { ConsoleView } from '../view.ts'
import { given } from './pages.ts'

const concerning: ReadonlySet<string> = new Set(['config_refused', 'decision_point', 'console_policies'])

export function policiesPage(view: ConsoleView, { policies: counts }: CallRecorder): Policies {
  const set = view.policies()
  const decisionPoint = view.decisionPoint?.()
  const items = set?.items ?? []
  const failing = items.flatMap(({ id, text }) => {
    const failed = counts.failed(text)
    return failed > 0
      ? [`${id} failed to evaluate ${failed === 1 ? 'once' : `${failed} times`}; see this server's log`]
      : []
  })
  const refused = view.problems().filter(({ type }) => concerning.has(type))
  return {
    enabled: set !== undefined || decisionPoint !== undefined,
    ...given('decisionPoint', decisionPoint),
    items: items.map((policy) => ({ ...policy, decided: counts.decided(policy.text) })),
    problems: [
      ...(set?.problems ?? []),
      ...refused.map(({ message, fix }) => `${message}: ${fix}`),
      ...failing,
    ],
  }
}
