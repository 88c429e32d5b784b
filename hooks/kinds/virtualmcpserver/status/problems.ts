/**
 * The condition about what the running pods say is wrong: settings that were refused, a store that cannot be reached, names
 * in conflict, a backend that is down. Each with its next step and with its type, under which log, metrics, `/status` and
 * console tell the same. Present only while there is something.
 */
import type { SyncContext } from '../../../sync/context.ts'
import { type Fields, isFields, listOf } from '../../../base/kube.ts'

const maxProblems = 20
const maxText = 400
const maxType = 64

/** One line for each problem, whichever pods report it. Reports are data of a pod: every member is checked. */
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
