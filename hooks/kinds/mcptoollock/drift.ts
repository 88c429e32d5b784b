/**
 * Reads the reports of running virtual servers about a lock's backend. Reports come from pods, so every field is
 * checked.
 */
import { byText } from '../../../schemas/index.ts'
import type { SyncContext } from '../../sync/context.ts'
import { type Fields, fieldsOf, isFields, listOf } from '../../base/kube.ts'
import { podReports } from '../virtualmcpserver/status/report.ts'

interface ObservedDrift {
  readonly lock: string
  /** Reason why the server does not use the lock. */
  readonly failure: string
  readonly counts: Readonly<Record<(typeof states)[number], number>>
  readonly drift: readonly Fields[]
}

const states = ['pinned', 'new', 'changed', 'removed'] as const
const maxDrift = 50

/** Returns the report with the most differences, or undefined when no server has listed the backend. */
export function observedDrift(context: SyncContext<'MCPToolLock'>): ObservedDrift | undefined {
  const { parent } = context
  const found = [...(context.request.related.get('ConfigMap.v1') ?? [])]
    .sort((a, b) => byText(a.metadata.name, b.metadata.name))
    .flatMap((map) => podReports(map))
    .flatMap((report) => listOf(report['pinning']).filter(isFields))
    .filter((entry) => isAbout(entry, parent) && entry['lock'] !== 'missing')
    .filter((entry) => entry['observed'] === true || entry['lock'] === 'invalid')
    .map(readEntry)
  return found.reduce<ObservedDrift | undefined>(
    (worst, next) => (worst && severityOf(worst) >= severityOf(next) ? worst : next),
    undefined,
  )
}

/** Backends of two kinds may have the same name, so the lock's name takes precedence if the report contains it. */
function isAbout(
  { backend, locks }: Fields,
  { metadata, spec }: SyncContext<'MCPToolLock'>['parent'],
): boolean {
  return Array.isArray(locks) ? locks.includes(metadata.name) : backend === spec.backendRef.name
}

function severityOf({ lock, counts }: ObservedDrift): number {
  return lock === 'ok' ? counts.changed + counts.new + counts.removed : Number.POSITIVE_INFINITY
}

function readEntry(entry: Fields): ObservedDrift {
  const counts = fieldsOf(entry['counts'])
  const count = (state: string): number => {
    const value = counts[state]
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31
      ? value
      : 0
  }
  const failure = entry['failure']
  return {
    lock: entry['lock'] === 'ok' ? 'ok' : 'invalid',
    failure:
      typeof failure === 'string' && failure !== '' ? failure.slice(0, 1_024) : 'the lock cannot be used',
    counts: {
      pinned: count('pinned'),
      new: count('new'),
      changed: count('changed'),
      removed: count('removed'),
    },
    drift: listOf(entry['drift']).filter(isFields).flatMap(readDrift).slice(0, maxDrift),
  }
}

function readDrift({ kind, name, state, parts, digest }: Fields): Fields[] {
  if (typeof kind !== 'string' || typeof name !== 'string') return []
  if (state !== 'new' && state !== 'changed' && state !== 'removed') return []
  const named = listOf(parts).filter((part) => typeof part === 'string' && part.length <= 32)
  return [
    {
      kind: kind.slice(0, 64),
      name: name.slice(0, 1_024),
      state,
      parts: named.slice(0, 8),
      ...(typeof digest === 'string' && { digest: digest.slice(0, 128) }),
    },
  ]
}
