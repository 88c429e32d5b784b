/**
 * Shows calls per minute as bars. Failed calls are stacked on top in a different pattern, and the worst health is shown
 * along the base. The chart has a text alternative, and the page offers the numbers as a table.
 */
import type { Health, Minute } from '../../api.ts'
import { texts } from '../texts.ts'
import { count, shortTime } from './format.ts'

const height = 24
const barHeight = 20

export function Sparkline({
  minutes,
  label,
  wide = false,
}: {
  readonly minutes: readonly Minute[]
  readonly label: string
  readonly wide?: boolean
}) {
  const most = Math.max(1, ...minutes.map(({ calls }) => calls))
  const unit = wide ? 12 : 2
  const width = Math.max(1, minutes.length * unit)
  const gap = wide ? 2 : 0.4
  const picture = (
    <svg
      class={wide ? 'sparkline wide' : 'sparkline'}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${summaryOf(minutes)}`}
    >
      <rect class="axis" x={0} y={barHeight} width={width} height={0.5} />
      {minutes.map((minute, i) => (
        <Bar key={minute.at} minute={minute} x={i * unit} width={unit - gap} most={most} />
      ))}
    </svg>
  )
  const [first] = minutes
  if (!wide || first === undefined) return picture
  return (
    <div class="chart">
      {picture}
      <div class="scale soft" aria-hidden="true">
        <span>{shortTime(first.at, 'minutes')}</span>
        <span>{texts.overview.most(most)}</span>
        <span>{texts.overview.now}</span>
      </div>
    </div>
  )
}

const baseOf: Readonly<Partial<Record<Health, string>>> = {
  healthy: 'good',
  degraded: 'warn',
  unhealthy: 'bad',
  unauthenticated: 'bad',
}

function Bar({
  minute,
  x,
  width,
  most,
}: {
  readonly minute: Minute
  readonly x: number
  readonly width: number
  readonly most: number
}) {
  const { calls, failed, denied, health } = minute
  const heightOf = (part: number): number => (part === 0 ? 0 : Math.max(1.5, (part / most) * barHeight))
  const bad = heightOf(Math.min(calls, failed))
  const refused = heightOf(Math.min(calls, denied))
  const fine = heightOf(Math.max(0, calls - failed - denied))
  const base = health === undefined ? undefined : baseOf[health]
  const top = (used: number): number => Math.max(0, barHeight - used)
  return (
    <>
      {fine > 0 ? <rect class="fine" x={x} y={top(fine)} width={width} height={fine} /> : undefined}
      {refused > 0 ? (
        <rect class="refused" x={x} y={top(fine + refused)} width={width} height={refused} />
      ) : undefined}
      {bad > 0 ? (
        <rect class="failed" x={x} y={top(fine + refused + bad)} width={width} height={bad} />
      ) : undefined}
      {base === undefined ? undefined : (
        <rect
          class={`base ${base}`}
          x={x}
          y={base === 'good' ? height - 1 : height - 3}
          width={width}
          height={base === 'good' ? 1 : 3}
        />
      )}
    </>
  )
}

/** Summarizes the bars in one sentence. */
export function summaryOf(minutes: readonly Minute[]): string {
  const sum = (of: 'calls' | 'failed' | 'denied'): string =>
    count(minutes.reduce((total, minute) => total + minute[of], 0))
  const bad = minutes.filter(
    ({ health }) => health !== undefined && health !== 'healthy' && health !== 'unknown',
  )
  return texts.overview.spark(minutes.length, sum('calls'), sum('failed'), sum('denied'), bad.length)
}

/** Lists the minutes with calls or bad health. */
export function MinuteTable({
  minutes,
  label,
}: {
  readonly minutes: readonly Minute[]
  readonly label: string
}) {
  const shown = minutes.filter(
    ({ calls, health }) => calls > 0 || (health !== undefined && health !== 'healthy'),
  )
  if (shown.length === 0) return <p class="soft">{texts.overview.noMinutes}</p>
  return (
    <div class="minutes" tabIndex={0} role="region" aria-label={label}>
      <table class="small">
        <thead>
          <tr>
            <th scope="col">{texts.overview.minute}</th>
            <th scope="col" class="number">
              {texts.overview.calls}
            </th>
            <th scope="col" class="number">
              {texts.overview.failed}
            </th>
            <th scope="col" class="number">
              {texts.overview.denied}
            </th>
            <th scope="col" class="number">
              p95
            </th>
            <th scope="col">{texts.overview.state}</th>
          </tr>
        </thead>
        <tbody>
          {shown.toReversed().map(({ at, calls, failed, denied, p95, health }) => (
            <tr key={at}>
              <th scope="row">{shortTime(at, 'minutes')}</th>
              <td class="number">{count(calls)}</td>
              <td class="number">{count(failed)}</td>
              <td class="number">{count(denied)}</td>
              <td class="number">{p95 === undefined ? '–' : `${count(Math.round(p95))} ms`}</td>
              <td>{health === undefined ? '–' : texts.health[health]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
