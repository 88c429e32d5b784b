/**
 * The requirements manifest: every promise of the spec documents, which of them tests prove, and which are open.
 *
 * Citations are found by reading the source of the test files, not by running them: `proves('a', 'b')` with plain
 * string literals. Nothing here decides whether a test is any good.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { open } from './open.ts'
import { spec1 } from './spec1.ts'
import { spec2 } from './spec2.ts'
import { spec3 } from './spec3.ts'
import type { Requirement } from './table.ts'

export { open, type Requirement }

export const requirements: readonly Requirement[] = [...spec1, ...spec2, ...spec3]

const testRoot = resolve(import.meta.dirname, '..')

export interface Citation {
  readonly id: string
  /** Test file, relative to test/. */
  readonly file: string
}

/** Every id cited by the test files below `root` (test/ by default). Arguments that are no literals are ignored. */
export function citations(root = testRoot): readonly Citation[] {
  return testFiles(root).flatMap((file) =>
    citedIds(readFileSync(file, 'utf8')).map((id) => ({ id, file: relative(root, file) })),
  )
}

/** Ids inside the `proves(…)` calls of one source text. */
export function citedIds(source: string): readonly string[] {
  const calls = source.matchAll(/\bproves\(([^)]*)\)/g)
  return [...calls].flatMap((call) =>
    [...(call[1] ?? '').matchAll(/'([^'\n]+)'|"([^"\n]+)"/g)].map(
      (literal) => literal[1] ?? literal[2] ?? '',
    ),
  )
}

/** Where the manifest, the tests and the open list disagree; all empty when they agree. */
export interface Disagreement {
  /** Cited, but no such requirement. */
  readonly unknown: readonly Citation[]
  /** Neither cited nor listed as open. */
  readonly missing: readonly string[]
  /** Listed as open, but cited or not a requirement. */
  readonly stale: readonly string[]
}

export function disagreements(
  all: readonly Requirement[],
  cited: readonly Citation[],
  openIds: readonly string[],
): Disagreement {
  const known = new Set(all.map((row) => row.id))
  const proven = new Set(cited.map((citation) => citation.id))
  const listed = new Set(openIds)
  return {
    unknown: cited.filter((citation) => !known.has(citation.id)),
    missing: all.map((row) => row.id).filter((id) => !proven.has(id) && !listed.has(id)),
    stale: openIds.filter((id) => proven.has(id) || !known.has(id)),
  }
}

/** Requirement ids without a citation, sorted. */
export function unproven(all: readonly Requirement[], cited: readonly Citation[]): readonly string[] {
  const proven = new Set(cited.map((citation) => citation.id))
  return all
    .map((row) => row.id)
    .filter((id) => !proven.has(id))
    .sort()
}

function testFiles(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) return entry.name === 'fixtures' ? [] : testFiles(path)
    return entry.name.endsWith('.test.ts') ? [path] : []
  })
}
