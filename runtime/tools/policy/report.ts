/** Formats the output of the policy commands. */
import type { DecisionExplanation, Flip, PolicyTestRun, Replay } from '../../policy/index.ts'
import { junitReport, xml } from '../../toolkit/terminal/junit.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'

export type TestFormat = 'text' | 'json' | 'junit'

export interface FileRun {
  readonly file: string
  readonly run: PolicyTestRun
}

function testCounts(runs: readonly FileRun[]) {
  const all = runs.flatMap(({ file, run }) => run.results.map((result) => ({ file, ...result })))
  const idle = [...new Set(runs.flatMap(({ run }) => run.idle))].filter((id) =>
    runs.every(({ run }) => run.idle.includes(id)),
  )
  const failed = all.filter(({ failures }) => failures.length > 0)
  const elsewhere = all.filter((result) => result.elsewhere !== undefined)
  const passed = all.length - failed.length - elsewhere.length
  return { all, idle, failed, elsewhere, passed }
}

/** Returns the report for `-o json`. */
export function testsObject(runs: readonly FileRun[]): object {
  const { all, idle, failed, elsewhere, passed } = testCounts(runs)
  return { passed, failed: failed.length, elsewhere: elsewhere.length, tests: all, idle }
}

export function reportTests(runs: readonly FileRun[], format: Exclude<TestFormat, 'json'>): string {
  const { all, idle, failed, elsewhere, passed } = testCounts(runs)
  if (format === 'junit') return junit(all, failed.length)
  return [
    ...failed.flatMap(({ file, name, failures }) => [
      `failed: ${file}: ${name}`,
      ...failures.map((line) => `  ${line}`),
    ]),
    ...elsewhere.map((result) => `decided elsewhere: ${result.file}: ${result.name}: ${result.elsewhere}`),
    ...(idle.length > 0 ? [`no test depends on: ${idle.join(', ')}`] : []),
    `${passed} passed, ${failed.length} failed${elsewhere.length > 0 ? `, ${elsewhere.length} decided elsewhere; use --ask to query the decision point` : ''}`,
  ].join('\n')
}

function junit(
  all: readonly ({ readonly file: string } & PolicyTestRun['results'][number])[],
  failed: number,
): string {
  const cases = all.map(({ file, name, failures, elsewhere }) => {
    const failure =
      failures.length === 0
        ? skippedElement(elsewhere)
        : `<failure message="${xml(failures[0] ?? '')}">${xml(failures.join('\n'))}</failure>`
    return `    <testcase classname="${xml(file)}" name="${xml(name)}">${failure}</testcase>`
  })
  const elsewhere = all.filter((result) => result.elsewhere !== undefined).length
  return junitReport('gatehouse policy test', cases, failed, elsewhere)
}

function skippedElement(elsewhere: string | undefined): string {
  return elsewhere === undefined ? '' : `<skipped message="${xml(`decided elsewhere: ${elsewhere}`)}"/>`
}

export function reportExplanation(explained: DecisionExplanation): string {
  const { decision, determining, policies, missing, leftOut, refused } = explained
  const verdict = {
    permitted: `allowed by ${determining.join(', ')}`,
    forbidden: `denied by ${determining.join(', ') || 'a failed policy'}`,
    unmentioned: 'denied: no policy permits it',
  }[decision]
  return [
    refused === undefined ? verdict : `denied: ${refused}`,
    ...policies.map(({ id, effect, outcome, because, absent }) => {
      const absence = absent ? ` (absent: ${absent.join(', ')})` : ''
      const reason = because === undefined ? '' : `: ${because}${absence}`
      return `  ${outcome.padEnd(8)}${effect.padEnd(7)} ${id}${reason}`
    }),
    ...(leftOut > 0 ? [`  ${leftOut} more policies were not evaluated`] : []),
    ...(missing.length > 0 && decision !== 'permitted'
      ? [`permit policies read attributes that the caller lacks: ${missing.join(', ')}`]
      : []),
  ].join('\n')
}

export interface ReplayReport extends Omit<Replay, 'flips'> {
  /** Lines whose decision depends on an external decision point, which the replay did not query. */
  readonly elsewhere?: number
  readonly flips: readonly (Flip & { readonly expected: boolean })[]
}

const maxRows = 20

export function reportReplay(replay: ReplayReport): string {
  const { decisions, skipped, unchanged, inconclusive, flips, lacking, idle, elsewhere = 0 } = replay
  if (elsewhere > 0)
    return `${quantity(decisions, 'decision')}: ${elsewhere} decided elsewhere, nothing was compared; ${quantity(skipped, 'line')} without a decision; use --ask to query the decision point`
  const unexpected = flips.filter(({ expected }) => !expected)
  return [
    `${quantity(decisions, 'decision')}: ${unchanged} unchanged, ${flips.length} changed, ${inconclusive} inconclusive; ${quantity(skipped, 'line')} without a decision`,
    ...table('by principal', flips, ({ principal }) => [principal]),
    ...table('by target', flips, ({ target }) => [target]),
    ...table('by policy', flips, ({ policies }) => (policies.length > 0 ? policies : ['no policy'])),
    ...(lacking.length > 0
      ? [`inconclusive lines lack: ${lacking.map(([name, lines]) => `${name} (${lines})`).join(', ')}`]
      : []),
    ...(idle.length > 0 ? [`no recorded decision depends on: ${idle.join(', ')}`] : []),
    ...unexpected
      .slice(0, maxRows)
      .map(
        ({ line, principal, target, from, to, policies }) =>
          `line ${line}: ${principal} ${target}: ${from} becomes ${to} by ${policies.join(', ') || 'no policy'}`,
      ),
    ...(unexpected.length > maxRows ? [`and ${unexpected.length - maxRows} more`] : []),
  ].join('\n')
}

function table(title: string, flips: readonly Flip[], keysOf: (flip: Flip) => readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const flip of flips) {
    for (const key of keysOf(flip)) {
      const row = `${key}: ${flip.from} becomes ${flip.to}`
      counts.set(row, (counts.get(row) ?? 0) + 1)
    }
  }
  if (counts.size === 0) return []
  const rows = [...counts].sort(([, a], [, b]) => b - a)
  const more = rows.length > maxRows ? [`  and ${rows.length - maxRows} more`] : []
  return [`${title}:`, ...rows.slice(0, maxRows).map(([row, count]) => `  ${count} × ${row}`), ...more]
}
