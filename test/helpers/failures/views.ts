/**
 * Checks one failure in five views of a running server. All views must report the same name, reason and next step. A
 * view that does not report the failure has a reason in its row, and must not report it.
 */
import type { Test } from 'tap'
import type { EventType } from '../../../runtime/observe/events/fields.ts'
import { until } from '../redis.ts'
import type { Line, Rig, Told } from './rig.ts'

export type View = 'log' | 'status' | 'metrics' | 'condition' | 'console'

export interface Failure {
  readonly name: string
  readonly type: EventType
  /** True if the failure lasts until it is fixed; false if it affects single calls. */
  readonly lasts: boolean
  /** Reason why the failure cannot be produced on this machine. */
  readonly skip?: string | false
  /** Produces the failure. */
  readonly drive: (t: Test) => Promise<Rig>
  readonly backend?: string
  /** For a failure of single calls: the same reason in log, `/status` and console. */
  readonly reason?: string | RegExp
  readonly message: RegExp
  readonly fix: RegExp
  /** Additional members of the log line. */
  readonly logged?: Line
  /** A metrics line in addition to the lines of every event. */
  readonly metric?: string | RegExp
  /** The backend's health in `/status`, the report and the console. */
  readonly health?: readonly [status: string, report: string]
  /** The call's entry in the console. */
  readonly call?: Line
  readonly silent?: Partial<Record<View, string>>
  readonly also?: (t: Test, told: Told, rig: Rig) => Promise<void> | void
}

/** Reason why conditions do not report failures of single calls. */
export const noState = { condition: 'one request says nothing lasting about the resource' }

export function tellAlike(t: Test, failures: readonly Failure[]): void {
  t.setTimeout(240_000)
  for (const failure of failures)
    t.test(failure.name, { skip: failure.skip ?? false }, async (t) => {
      const rig = await failure.drive(t)
      const told = await settled(rig, failure)
      checkLog(t, told, failure)
      if (failure.lasts) checkLasting(t, told, failure)
      else checkPassing(t, told, failure)
      checkMetrics(t, told, failure)
      checkHealth(t, told, failure)
      await failure.also?.(t, told, rig)
    })
}

function isIt({ type, backend }: Failure) {
  return (line: Line): boolean =>
    line['type'] === type && (backend === undefined || line['backend'] === backend)
}

/** Waits for the slowest view: the report is written a second after the change. */
async function settled(rig: Rig, failure: Failure): Promise<Told> {
  const { lasts, silent = {} } = failure
  const matches = isIt(failure)
  await until(async () => {
    const { status, report } = await rig.told()
    if (!lasts) return status.recent_failures.some(matches)
    return (
      status.problem_details.some(matches) &&
      (silent.condition !== undefined || report.problems.some(matches))
    )
  })
  return rig.told()
}

function statusOf({ status }: Told, failure: Failure): Line {
  const list = failure.lasts ? status.problem_details : status.recent_failures
  return list.find(isIt(failure)) ?? {}
}

function checkLog(t: Test, told: Told, failure: Failure): void {
  const { type, backend, lasts, logged = {} } = failure
  const { fix } = statusOf(told, failure)
  // Successful events have the same type in the log, without a next step.
  const lines = told.lines.filter(
    (line) =>
      line['event'] === type &&
      line['fix'] !== undefined &&
      (backend === undefined || line['backend'] === backend),
  )
  const most = lasts ? 6 : 1
  t.ok(lines.length >= 1 && lines.length <= most, `log: ${lines.length} lines, however often it happens`)
  t.match(
    lines.find((line) => line['fix'] === fix),
    { ...logged, level: /info|warn|error/ },
    'log: with the next step',
  )
}

function checkLasting(t: Test, told: Told, failure: Failure): void {
  const { type, message, fix, silent = {} } = failure
  const problem = statusOf(told, failure)
  t.match(problem, { message, fix, since: /^\d{4}-/ }, 'status')
  t.ok(told.status.problems.includes(String(problem['message'])), 'status: the list of messages')
  t.match(told.metrics, new RegExp(`gatehouse_problems\\{type="${type}"\\} [1-9]`), 'metrics: a gauge')
  t.same(told.overview.problems.find(isIt(failure)), problem, 'console: the overview')
  t.match(
    told.configPage.find(({ code, message: text }) => code === type && text === problem['message']),
    { fix: problem['fix'] },
    'console: the configuration',
  )
  const condition = told.conditions.find((one) => one.type === 'ServesWithoutProblems')
  if (silent.condition !== undefined) {
    t.notMatch(condition?.message ?? '', `(${type})`, `condition: ${silent.condition}`)
    return
  }
  t.match(condition, { status: 'False', reason: 'ProblemsReported' }, 'condition')
  const line = `${String(problem['message'])}: ${String(problem['fix'])} (${type})`
  t.ok(condition?.message.includes(line), `condition: ${line}`)
}

function checkPassing(t: Test, told: Told, failure: Failure): void {
  const { type, message, fix, reason, call, silent = {} } = failure
  const found = statusOf(told, failure)
  t.match(found, { message, fix, first: /^\d{4}-/, last: /^\d{4}-/ }, 'status')
  if (reason !== undefined) t.match(found, { reason }, 'status: why')
  t.ok(Number(found['count']) >= 1, 'status: how often')
  const shown = told.overview.failures.find(isIt(failure))
  t.same({ ...shown, count: 0, last: '' }, { ...found, count: 0, last: '' }, 'console: the overview')
  if (call)
    t.ok(
      told.calls.some((one) => fits(one, call)),
      `console: calls ${JSON.stringify(told.calls)}`,
    )
  t.ok(silent.condition, 'a row says why conditions are silent')
  const text = JSON.stringify(told.conditions)
  t.notMatch(text, `(${type})`, `condition: ${silent.condition}`)
  t.notOk(told.status.problem_details.some(isIt(failure)), 'it is no problem that lasts')
}

function checkMetrics(t: Test, { metrics }: Told, { type, metric }: Failure): void {
  t.match(metrics, new RegExp(`gatehouse_events_total\\{type="${type}"\\} [1-9]`), 'metrics: a counter')
  if (metric !== undefined) t.match(metrics, metric, 'metrics')
}

function checkHealth(t: Test, { status, report, overview }: Told, { health, backend }: Failure): void {
  if (!health) return
  const named = (one: Line): boolean => one['name'] === backend
  t.equal(status.backends.find(named)?.['health'], health[0], 'status: health')
  t.equal(report.backends.find(named)?.['status'], health[1], 'report: health')
  t.equal(overview.backends.find(named)?.['health'], health[0], 'console: health')
}

/** Returns true if a line contains these members at any depth. */
function fits(line: unknown, wanted: unknown): boolean {
  if (wanted === null || typeof wanted !== 'object') return line === wanted
  if (line === null || typeof line !== 'object') return false
  return Object.entries(wanted).every(([key, value]) => fits((line as Line)[key], value))
}
