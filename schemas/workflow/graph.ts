/** Checks the order of steps: dependencies must exist and must not be circular. */
import type { WorkflowStep } from '../generated/types.ts'
import type { Violation } from '../validation/violations.ts'

export function stepGraphViolations(steps: readonly WorkflowStep[], path: string): Violation[] {
  const ids = new Set(steps.map(({ id }) => id))
  const unknown = steps.flatMap(({ dependsOn = [] }, index) =>
    dependsOn
      .filter((id) => !ids.has(id))
      .map((id) => ({
        path: `${path}[${index}].dependsOn`,
        message: `unknown step ${JSON.stringify(id.slice(0, 80))}`,
      })),
  )
  const circle = circleIn(steps)
  return circle
    ? [
        ...unknown,
        { path, message: `the steps ${circle.join(' -> ')} have a circular dependency`, rule: 'cycle' },
      ]
    : unknown
}

/** Returns the IDs in one cycle, with the first ID repeated at the end. Returns undefined if there is no cycle. */
function circleIn(steps: readonly WorkflowStep[]): readonly string[] | undefined {
  const byId = new Map(steps.map((step) => [step.id, step]))
  const done = new Set<string>()
  for (const { id } of steps) {
    const stack: { readonly id: string; next: number }[] = [{ id, next: 0 }]
    const open = new Set([id])
    while (stack.length > 0 && !done.has(id)) {
      const top = stack.at(-1)
      if (!top) break
      const target = byId.get(top.id)?.dependsOn?.[top.next]
      top.next += 1
      if (target === undefined) {
        stack.pop()
        open.delete(top.id)
        done.add(top.id)
      } else if (open.has(target)) {
        const path = stack.map((entry) => entry.id)
        return [...path.slice(path.indexOf(target)), target]
      } else if (byId.has(target) && !done.has(target)) {
        stack.push({ id: target, next: 0 })
        open.add(target)
      }
    }
  }
  return undefined
}

/** Returns a function that maps a step's ID to all steps that depend on it, directly or indirectly. */
export function successorsOf(steps: readonly WorkflowStep[]): (id: string) => ReadonlySet<string> {
  const direct = new Map<string, string[]>()
  for (const { id, dependsOn = [] } of steps) {
    for (const before of dependsOn) direct.set(before, [...(direct.get(before) ?? []), id])
  }
  const known = new Map<string, ReadonlySet<string>>()
  return (id) => {
    const found = known.get(id)
    if (found) return found
    const all = new Set<string>()
    const queue = [...(direct.get(id) ?? [])]
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      if (all.has(next)) continue
      all.add(next)
      queue.push(...(direct.get(next) ?? []))
    }
    known.set(id, all)
    return all
  }
}
