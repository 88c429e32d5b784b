/** Compares two listings of a backend. */
import type { ListErrors } from '../items/errors.ts'
import type { Listing } from '../listing.ts'

/** True if both listings have the same items and the same problems. */
export function sameItems(a: Listing, b: Listing): boolean {
  if (!sameViolations(a.violations, b.violations) || !sameDefects(a, b)) return false
  const kinds = ['tools', 'resources', 'templates', 'prompts'] as const
  return kinds.every((kind) => {
    const ours = a[kind]
    const theirs = b[kind]
    return ours.length === theirs.length && ours.every(({ json }, i) => theirs[i]?.json.equals(json) ?? false)
  })
}

export function sameInstructions({ server: a }: Listing, { server: b }: Listing): boolean {
  return a.instructions === b.instructions
}

export function sameServer({ server: a }: Listing, { server: b }: Listing): boolean {
  const { listChanged, ...ours } = a.capabilities
  const { listChanged: announced, ...theirs } = b.capabilities
  return (
    JSON.stringify([a.protocolVersion, a.instructions, ours, [...listChanged], [...a.extensions]]) ===
    JSON.stringify([b.protocolVersion, b.instructions, theirs, [...announced], [...b.extensions]])
  )
}

function sameViolations(a: ListErrors, b: ListErrors): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

function sameDefects({ defects: a = [] }: Listing, { defects: b = [] }: Listing): boolean {
  return a.length === b.length && a.every(({ problem }, i) => b[i]?.problem === problem)
}
