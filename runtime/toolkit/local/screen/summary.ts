/** Returns the summary at the end of a session: run time, resources and their restarts. */
import type { WorkloadView } from '../session.ts'

export function summaryOf(workloads: readonly WorkloadView[], ms: number): string {
  const restarts = new Map<string, number>()
  for (const { parent, restarts: count = 0, phase } of workloads) {
    if (phase === 'not runnable') continue
    const label = `${parent.kind} ${parent.metadata.name}`
    restarts.set(label, (restarts.get(label) ?? 0) + count)
  }
  const rows = [...restarts].map(([label, count]) => {
    if (count === 0) return `  ${label}: no restarts`
    return `  ${label}: ${count} ${count === 1 ? 'restart' : 'restarts'}`
  })
  return [`Stopped after ${duration(ms)}. Resources:`, ...(rows.length > 0 ? rows : ['  none'])].join('\n')
}

/** `1 h 2 min`, `3 min 4 s`, `5 s`. */
function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  if (hours > 0) return `${hours} h ${minutes % 60} min`
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`
}
