/** Current problems and individual failures in the last hour, each with a suggested next step. */
import type { FailureView, Overview, ProblemView } from '../../api.ts'
import { ago } from '../parts/format.ts'
import { Mark } from '../parts/marks.tsx'
import { Foreign, Time } from '../parts/text.tsx'
import { texts } from '../texts.ts'

/** Maximum number of backend names to show for a group. */
const mostNames = 8

/** The backends that are down, grouped by cause. */
export function Down({ overview: { summary, down, backends } }: { readonly overview: Overview }) {
  if (backends.length === 0) return null
  if (summary === undefined)
    return (
      <p class="fine-line">
        <Mark shape="check" tone="good" word={texts.overview.noneDown} />
      </p>
    )
  return (
    <section class="causes" aria-labelledby="down">
      <h2 id="down">{summary}</h2>
      <ul>
        {down.map(({ label, backends, text, fix }) => (
          <li key={`${label} ${backends[0] ?? ''}`}>
            <strong>
              <Foreign text={backends.slice(0, mostNames).join(', ')} most={300} />
              {backends.length > mostNames ? ` ${texts.overview.moreNames(backends.length - mostNames)}` : ''}
            </strong>
            {': '}
            <Foreign text={text} most={300} /> <span class="soft">{texts.overview.fix}</span>{' '}
            <Foreign text={fix} most={500} />
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Returns the problems that are not about the health of a backend, which `Down` shows. */
export function otherProblems({ problems, down }: Overview): readonly ProblemView[] {
  const shown = new Set(down.flatMap(({ backends }) => backends))
  const isShown = ({ type, backend }: ProblemView): boolean =>
    (type === 'backend_health' || type === 'backend_excluded') && backend !== undefined && shown.has(backend)
  return problems.filter((problem) => !isShown(problem))
}

export function Problems({ problems }: { readonly problems: readonly ProblemView[] }) {
  if (problems.length === 0) return null
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">{texts.overview.problems(problems.length)}</h2>
      <ul class="problems">
        {problems.map((problem) => (
          <li key={`${problem.type} ${problem.backend ?? ''} ${problem.since}`}>
            <p>
              <Mark shape="triangle" tone="bad" />{' '}
              {problem.backend === undefined ? undefined : (
                <>
                  <strong>
                    <Foreign text={problem.backend} most={60} />
                  </strong>
                  {': '}
                </>
              )}
              <Foreign text={problem.message} most={500} />{' '}
              <span class="soft">
                {texts.overview.since} <Time at={problem.since} /> ({ago(problem.since)})
              </span>
            </p>
            <p>
              <span class="soft">{texts.overview.fix}</span> <Foreign text={problem.fix} most={500} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}

export function Failures({ failures }: { readonly failures: readonly FailureView[] }) {
  if (failures.length === 0) return null
  return (
    <section aria-labelledby="failures">
      <h2 id="failures">{texts.overview.failures}</h2>
      <ul class="problems passing">
        {failures.map(({ type, backend, reason, message, fix, count, first, last }) => (
          <li key={`${type} ${backend ?? ''} ${reason ?? ''} ${first}`}>
            <p>
              {backend === undefined ? undefined : (
                <>
                  <strong>
                    <Foreign text={backend} most={60} />
                  </strong>
                  {': '}
                </>
              )}
              {message}
              {reason === undefined ? undefined : (
                <>
                  {' ('}
                  <Foreign text={reason} most={60} />
                  {')'}
                </>
              )}{' '}
              <span class="soft">
                {texts.overview.times(count)} <Time at={last} /> ({ago(last)})
              </span>
            </p>
            <p>
              <span class="soft">{texts.overview.fix}</span> <Foreign text={fix} most={500} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}
