/** Checks for tool settings that several kinds share. */
import type { ToolOverride, Violation } from '../../../../schemas/index.ts'

/** Checks tool overrides: final names must be unique, because a duplicate would make a tool unreachable. */
export function overrideViolations(
  overrides: { readonly [name: string]: ToolOverride } | undefined,
  path: string,
): Violation[] {
  const originalByName = new Map<string, string>()
  const violations: Violation[] = []
  for (const [original, { name }] of Object.entries(overrides ?? {}).sort(byKey)) {
    const finalName = name || original
    const previous = originalByName.get(finalName)
    if (previous !== undefined) {
      violations.push({
        path: `${path}[${JSON.stringify(original.slice(0, 80))}].name`,
        message: `the tools ${previous} and ${original} would both be called ${finalName}`,
      })
    }
    originalByName.set(finalName, original)
  }
  return violations
}

/** Sorts the entries, because messages must not depend on the order of map keys. */
function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}
