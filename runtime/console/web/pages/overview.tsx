/** Overview: current problems, the backends with their health over time, and totals for the last hour. */
import { useEffect, useState } from 'preact/hooks'
import type { BackendView, Me, Overview } from '../../api.ts'
import { ApiError, get, send } from '../data/client.ts'
import { paused, useReloadOn } from '../data/live.ts'
import { useResource } from '../data/use-resource.ts'
import { ago, count, duration } from '../parts/format.ts'
import { HealthMark } from '../parts/marks.tsx'
import { Empty, Failure, Loaded } from '../parts/notices.tsx'
import { MinuteTable, Sparkline, summaryOf } from '../parts/sparkline.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Foreign, Time } from '../parts/text.tsx'
import { may } from '../shell/permissions.ts'
import { hrefOf, pathPart } from '../shell/router.ts'
import { texts } from '../texts.ts'
import { Down, Failures, otherProblems, Problems } from './problems.tsx'

const refreshMs = 10_000

export function OverviewPage({ me }: { readonly me: Me }) {
  const resource = useResource('overview', (signal) => get<Overview>('overview', signal))
  const [asTable, setAsTable] = useState(false)
  const { reload } = resource
  useReloadOn('health', reload)
  useEffect(() => {
    const timer = setInterval(() => {
      if (!paused.peek() && !document.hidden) reload()
    }, refreshMs)
    return () => clearInterval(timer)
  }, [reload])
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{texts.pages.overview}</h1>
        <label class="check">
          <input
            type="checkbox"
            checked={asTable}
            onChange={({ currentTarget }) => setAsTable(currentTarget.checked)}
          />
          {texts.overview.asTable}
        </label>
      </div>
      <Loaded resource={resource}>
        {(overview) => (
          <>
            <Down overview={overview} />
            <Backends me={me} backends={overview.backends} asTable={asTable} reload={reload} />
            <Totals overview={overview} asTable={asTable} />
            <Problems problems={otherProblems(overview)} />
            <Failures failures={overview.failures} />
            <p class="soft small">
              {texts.asOf} <Time at={overview.asOf} exact /> · {texts.replica} {me.replica} · Gatehouse{' '}
              {me.version}
            </p>
          </>
        )}
      </Loaded>
    </>
  )
}

function Totals({ overview, asTable }: { readonly overview: Overview; readonly asTable: boolean }) {
  const { totals, minutes, sessions } = overview
  const figures = [
    [texts.overview.calls, count(totals.calls), hrefOf(['calls'])],
    [texts.overview.denied, count(totals.denied), hrefOf(['calls'], { outcome: 'denied' })],
    [texts.overview.failed, count(totals.failed), hrefOf(['calls'], { outcome: 'failure' })],
    ['p50', duration(totals.p50), undefined],
    ['p95', duration(totals.p95), undefined],
    [texts.pages.sessions, count(sessions), hrefOf(['sessions'])],
  ] as const
  return (
    <section aria-labelledby="totals">
      <h2 id="totals">{texts.overview.lastHour}</h2>
      <dl class="figures">
        {figures.map(([label, value, href]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{href === undefined ? value : <a href={href}>{value}</a>}</dd>
          </div>
        ))}
      </dl>
      {asTable ? (
        <MinuteTable minutes={minutes} label={texts.overview.perMinute} />
      ) : (
        <Sparkline minutes={minutes} label={texts.overview.perMinute} wide />
      )}
    </section>
  )
}

function Backends({
  me,
  backends,
  asTable,
  reload,
}: {
  readonly me: Me
  readonly backends: readonly BackendView[]
  readonly asTable: boolean
  readonly reload: () => void
}) {
  const [open, setOpen] = useState<string | undefined>()
  const columns: readonly Column<BackendView>[] = [
    {
      key: 'name',
      phone: 'first',
      label: texts.backend,
      head: true,
      cell: ({ name }) => (
        <button
          type="button"
          class="row"
          aria-expanded={open === name}
          onClick={() => setOpen(open === name ? undefined : name)}
        >
          <Foreign text={name} most={60} />
        </button>
      ),
    },
    {
      key: 'state',
      phone: 'first',
      label: texts.overview.state,
      cell: ({ name, health, since, signInUrl }) => (
        <>
          <HealthMark health={health} />
          <span class={signInUrl === undefined ? undefined : 'own-line'}>
            {since === undefined ? undefined : (
              <span class="soft"> {texts.overview.forTime(ago(since))}</span>
            )}
            {signInUrl === undefined ? undefined : (
              <>
                {' '}
                <a href={signInUrl} target="_blank" rel="noreferrer" aria-label={texts.overview.signIn(name)}>
                  {texts.states.signIn}
                </a>
              </>
            )}
          </span>
        </>
      ),
    },
    {
      key: 'minutes',
      label: texts.overview.sixtyMinutes,
      cell: ({ minutes, name }) =>
        asTable ? summaryOf(minutes) : <Sparkline minutes={minutes} label={name} />,
    },
    { key: 'calls', label: texts.overview.calls, number: true, cell: ({ calls }) => count(calls) },
    {
      key: 'failed',
      label: texts.overview.failed,
      number: true,
      cell: ({ failed }) => (failed > 0 ? <span class="bad">{count(failed)}</span> : '0'),
    },
    { key: 'p95', label: 'p95', number: true, cell: ({ p95 }) => duration(p95) },
    { key: 'tools', label: texts.pages.tools, number: true, cell: ({ tools }) => count(tools) },
    {
      key: 'error',
      phone: 'second',
      label: texts.overview.lastError,
      wide: true,
      cell: ({ lastError }) =>
        lastError === undefined ? undefined : (
          <>
            <Time at={lastError.at} /> <Foreign text={lastError.message} most={120} />
          </>
        ),
    },
  ]
  return (
    <section aria-labelledby="backends">
      <h2 id="backends">{texts.overview.backends}</h2>
      {backends.length === 0 ? (
        <Empty text={texts.overview.noBackends} command="gatehouse import --save mcp/" />
      ) : (
        <Table
          label={texts.overview.backends}
          columns={columns}
          rows={backends}
          keyOf={({ name }) => name}
          below={(backend) =>
            open === backend.name ? <BackendDetails me={me} backend={backend} reload={reload} /> : undefined
          }
        />
      )}
    </section>
  )
}

function BackendDetails({
  me,
  backend,
  reload,
}: {
  readonly me: Me
  readonly backend: BackendView
  readonly reload: () => void
}) {
  const { name, circuit, lastError, excluded } = backend
  const facts: readonly (readonly [string, string | undefined])[] = [
    [texts.overview.transport, backend.transport],
    [texts.overview.authType, backend.authType],
    [texts.overview.era, [backend.era, backend.revision].filter(Boolean).join(', ')],
    [texts.overview.circuit, circuit === undefined ? undefined : texts.overview.circuitState(circuit.state)],
    ['p50', duration(backend.p50)],
    [texts.overview.errorKind, lastError?.category],
    [texts.overview.lastError, lastError?.message],
    [texts.overview.fix, lastError?.fix],
    [texts.overview.excluded, excluded?.join('; ')],
  ]
  return (
    <div class="details">
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== undefined && value !== '')
          .map(([label, value = '']) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                <Foreign text={value} most={1000} />
              </dd>
            </div>
          ))}
      </dl>
      <p class="buttons">
        <a href={hrefOf(['calls'], { backend: name })}>{texts.overview.itsCalls}</a>
        <a href={hrefOf(['tools'], { backend: name })}>{texts.overview.itsTools}</a>
        {may(me, 'recheck') ? <Recheck name={name} reload={reload} /> : undefined}
      </p>
      <MinuteTable minutes={backend.minutes} label={texts.overview.minutesOf(name)} />
    </div>
  )
}

function Recheck({ name, reload }: { readonly name: string; readonly reload: () => void }) {
  const [state, setState] = useState<'idle' | 'busy' | 'done' | ApiError>('idle')
  const check = async (): Promise<void> => {
    setState('busy')
    try {
      await send('POST', `backends/${pathPart(name)}/recheck`)
      setState('done')
      reload()
    } catch (error) {
      setState(error instanceof ApiError ? error : new ApiError(0, 'page', String(error)))
    }
  }
  return (
    <>
      <button type="button" disabled={state === 'busy'} onClick={() => void check()}>
        {texts.overview.recheck}
      </button>
      <span role="status">{state === 'done' ? texts.overview.rechecked : ''}</span>
      {state instanceof ApiError ? <Failure error={state} /> : undefined}
    </>
  )
}
