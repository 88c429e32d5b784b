/** Compares backends with their locks and formats the differences. */
import type { RuntimeToolLock, ToolLockSpec } from '../../../schemas/index.ts'
import { pinScheme, runtimeToolLock } from '../../../schemas/index.ts'
import {
  compareWithLocks,
  type LockComparison,
  type PinDetail,
  type SurveyedBackend,
  type SurveyedPage,
} from '../../vmcp/index.ts'
import { visibleText } from '../../observe/index.ts'
import { comparePages, differenceLines, type PageDifference } from './pages.ts'
import type { LockTarget, UnlistedBackend } from './targets.ts'

export interface CheckedLock extends LockComparison {
  readonly backend: string
  /** False when the backend has no lock. */
  readonly locked: boolean
  readonly pages: readonly PageDifference[]
  /** Number of pages that no lock compares. */
  readonly unlockedPages: number
}

export async function checkBackend(
  target: LockTarget,
  listing: NonNullable<SurveyedBackend['listing']>,
  locks: readonly ToolLockSpec[],
  {
    pages = [],
    folders = [],
  }: { readonly pages?: readonly SurveyedPage[]; readonly folders?: readonly string[] } = {},
): Promise<CheckedLock> {
  const specs = locks.filter(
    ({ backendRef }) => backendRef.name === target.name && backendRef.kind === target.kind,
  )
  const own: RuntimeToolLock[] = specs.map((spec) => ({
    scheme: pinScheme,
    ...runtimeToolLock(spec, target.name),
  }))
  const compared = await compareWithLocks(listing, own)
  const found = comparePages(target.name, pages, specs, folders)
  const differences = found?.differences ?? []
  const countOf = (state: PageDifference['state']) =>
    differences.filter((page) => page.state === state).length
  const { counts } = compared
  return {
    ...compared,
    backend: target.name,
    locked: own.length > 0,
    counts: {
      pinned: counts.pinned + (found?.pinned ?? 0),
      new: counts.new + countOf('new'),
      changed: counts.changed + countOf('changed'),
      removed: counts.removed + countOf('removed'),
    },
    pages: differences,
    unlockedPages: found ? 0 : pages.length,
  }
}

export function isInSync({ locked, failure, drift, pages }: CheckedLock): boolean {
  return locked && failure === undefined && drift.length + pages.length === 0
}

const nouns = {
  tool: 'tool',
  prompt: 'prompt',
  resourceTemplate: 'resource template',
  skill: 'skill',
  instructions: 'instructions',
}

export function checkText(checked: CheckedLock): string {
  const { backend, locked, failure, counts, drift, pages } = checked
  if (!locked) return `${backend}: no lock`
  if (failure !== undefined) return `${backend}: the lock cannot be used: ${failure}`
  if (isInSync(checked)) return `${backend}: in sync, ${counts.pinned} pinned`
  const head = `${backend}: ${counts.changed} changed, ${counts.new} new, ${counts.removed} removed`
  return [head, ...drift.flatMap(driftLines), ...pages.flatMap(differenceLines)].join('\n')
}

function driftLines({ kind, name, state, parts, renamedFrom, diff }: PinDetail): string[] {
  const what = `${nouns[kind]}${name === '' ? '' : ` ${visibleText(name)}`}`
  const more = state === 'changed' ? `: ${parts.join(', ')}` : ''
  const before = renamedFrom === undefined ? '' : ` (renamed from ${visibleText(renamedFrom)})`
  if (state === 'removed') return [`  ${what} removed`]
  const lines = diff.flatMap((part) => [`    ${part.part}`, ...part.lines.map((line) => `      ${line}`)])
  return [`  ${what} ${state}${more}${before}`, ...lines]
}

/** Returns the machine-readable report, which contains differences and digests but no definitions. */
export function checkReport(checked: readonly CheckedLock[], unlisted: readonly UnlistedBackend[]): object {
  const backends = checked.map(({ backend, locked, failure, counts, drift, pages }) => ({
    backend,
    locked,
    failure,
    counts,
    drift: [
      ...drift.map(({ kind, name, state, parts, digest, renamedFrom, diff }) => ({
        kind,
        name: visibleText(name),
        state,
        parts,
        digest,
        renamedFrom,
        diff,
      })),
      ...pages.map(({ uri, state, digest, lines, cut }) => ({
        kind: 'page',
        name: visibleText(uri),
        state,
        parts: ['html'],
        digest,
        diff: lines.length === 0 ? [] : [{ part: 'html', lines, cut }],
      })),
    ],
  }))
  return { inSync: unlisted.length === 0 && checked.every(isInSync), backends, unlisted }
}
