/** Compares backends with their locks and formats the differences. */
import type { RuntimeToolLock, ToolLockSpec } from '../../../schemas/index.ts'
import { pinScheme, runtimeToolLock } from '../../../schemas/index.ts'
import {
  compareWithLocks,
  type LockComparison,
  type PinDetail,
  type SurveyedBackend,
} from '../../vmcp/index.ts'
import { visibleText } from '../../observe/index.ts'
import type { LockTarget } from './targets.ts'

export interface CheckedLock extends LockComparison {
  readonly backend: string
  /** False when the backend has no lock. */
  readonly locked: boolean
}

export async function checkBackend(
  target: LockTarget,
  listing: NonNullable<SurveyedBackend['listing']>,
  locks: readonly ToolLockSpec[],
): Promise<CheckedLock> {
  const own: RuntimeToolLock[] = locks
    .filter(({ backendRef }) => backendRef.name === target.name && backendRef.kind === target.kind)
    .map((spec) => ({ scheme: pinScheme, ...runtimeToolLock(spec, target.name) }))
  const compared = await compareWithLocks(listing, own)
  return { backend: target.name, locked: own.length > 0, ...compared }
}

export function isInSync({ locked, failure, drift }: CheckedLock): boolean {
  return locked && failure === undefined && drift.length === 0
}

const nouns = {
  tool: 'tool',
  prompt: 'prompt',
  resourceTemplate: 'resource template',
  skill: 'skill',
  instructions: 'instructions',
}

export function checkText(checked: CheckedLock): string {
  const { backend, locked, failure, counts, drift } = checked
  if (!locked) return `${backend}: no lock`
  if (failure !== undefined) return `${backend}: the lock cannot be used: ${failure}`
  if (isInSync(checked)) return `${backend}: in sync, ${counts.pinned} pinned`
  const head = `${backend}: ${counts.changed} changed, ${counts.new} new, ${counts.removed} removed`
  return [head, ...drift.flatMap(driftLines)].join('\n')
}

function driftLines({ kind, name, state, parts, renamedFrom, diff }: PinDetail): string[] {
  const what = `${nouns[kind]}${name === '' ? '' : ` ${visibleText(name)}`}`
  const more = state === 'changed' ? `: ${parts.join(', ')}` : ''
  const before = renamedFrom === undefined ? '' : ` (renamed from ${visibleText(renamedFrom)})`
  if (state === 'removed') return [`  ${what} removed`]
  const lines = diff.flatMap((part) => [`    ${part.part}`, ...part.lines.map((line) => `      ${line}`)])
  return [`  ${what} ${state}${more}${before}`, ...lines]
}

/** Set for a backend that could not be compared. */
export interface UnlistedBackend {
  readonly backend: string
  readonly message: string
}

/** Returns the machine-readable report, which contains differences and digests but no definitions. */
export function checkReport(checked: readonly CheckedLock[], unlisted: readonly UnlistedBackend[]): object {
  const backends = checked.map(({ backend, locked, failure, counts, drift }) => ({
    backend,
    locked,
    failure,
    counts,
    drift: drift.map(({ kind, name, state, parts, digest, renamedFrom, diff }) => ({
      kind,
      name: visibleText(name),
      state,
      parts,
      digest,
      renamedFrom,
      diff,
    })),
  }))
  return { inSync: unlisted.length === 0 && checked.every(isInSync), backends, unlisted }
}
