/**
 * Overrides of tools: no two may end in one name, for one of the tools would be out of reach.
 */
import type { Violation, ToolOverride } from '../../../../schemas/index.ts'

export function overrideViolations(
  overrides: { readonly [name: string]: ToolOverride } | undefined,
  path: string,
): Violation[] {
  const taken = new Map<string, string>()
  const violations: Violation[] = []
  for (const [original, { name }] of Object.entries(overrides ?? {}).sort(byKey)) {
    const shown = name || original
    const other = taken.get(shown)
    if (other !== undefined) {
      violations.push({
        path: `${path}[${JSON.stringify(original.slice(0, 80))}].name`,
        message: `the tools ${other} and ${original} would both be called ${shown}`,
      })
    }
    taken.set(shown, original)
  }
  return violations
}

/** The order of members in a map means nothing, and must not show in a message. */
function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}
