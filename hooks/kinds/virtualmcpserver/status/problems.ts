/**
 * Sets the condition that lists problems reported by running pods: rejected settings, an unreachable store, name
 * conflicts, an unavailable backend. Each line contains the next step and the problem type. The log, the metrics,
 * `/status` and the console use the same types. The condition is absent when there are no problems.
 */
import type { SyncContext } from '../../../sync/context.ts'
import { type Fields, isFields, listOf } from '../../../base/kube.ts'

const maxProblems = 20
const maxText = 400
const maxType = 64

/** Returns one line per problem, deduplicated across pods. Reports come from pods, so every field is checked. */
export function problemsIn(reports: readonly Fields[]): readonly string[] {
  const lines = reports
    .flatMap((report) => listOf(report['problems']))
    .filter(isFields)
    .flatMap(({ type, message, fix }) => {
      if (typeof type !== 'string' || typeof message !== 'string') return []
      const next = typeof fix === 'string' ? `: ${clip(fix)}` : ''
      return [`${clip(message)}${next} (${type.slice(0, maxType)})`]
    })
  return [...new Set(lines)].sort()
}

export function checkProblems(
  { conditions }: SyncContext<'VirtualMCPServer'>,
  problems: readonly string[],
): void {
  if (problems.length === 0) return
  const more = problems.length - maxProblems
  const message = [...problems.slice(0, maxProblems), ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
  conditions.set('ServesWithoutProblems', 'False', 'ProblemsReported', message)
}

function clip(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText - 1)}…` : text
}
