/**
 * Tries a tool as the signed-in user. Shows a form generated from the tool's schema, or JSON, then progress, server
 * requests and the result.
 */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Me, ToolDetail, TryRequest } from '../../api.ts'
import { jsonProblem, readJson } from '../data/json-text.ts'
import { duration } from '../parts/format.ts'
import { OutcomeMark } from '../parts/marks.tsx'
import { Failure, Notice } from '../parts/notices.tsx'
import { Foreign, LongText } from '../parts/text.tsx'
import { hrefOf } from '../shell/router.ts'
import { texts } from '../texts.ts'
import { App } from './app.tsx'
import { type ValueDraft, draftOf, fill, isOf, textOfDraft } from './draft.ts'
import { Field, ObjectFields } from './fields.tsx'
import { planOf } from './plan.ts'
import { Question } from './question.tsx'
import { Result } from './result.tsx'
import { type Run, type RunState, startRun } from './run.ts'

const eras = ['2026-07-28', '2025-11-25'] as const

export function TryTool({ me, tool }: { readonly me: Me; readonly tool: ToolDetail }) {
  const [draft, setDraft] = useState<ValueDraft>(() => formOf(tool))
  const [json, setJson] = useState<string | undefined>()
  const [problem, setProblem] = useState<string | undefined>()
  const [era, setEra] = useState<TryRequest['era']>(eras[0])
  const [typed, setTyped] = useState('')
  const [run, setRun] = useState<Run | undefined>()
  useEffect(() => () => run?.leave(), [run])
  const busy =
    run !== undefined && (run.state.value.state === 'running' || run.state.value.state === 'starting')
  const dangerous = tool.hints.destructive === true
  const start = (): void => {
    const text = json ?? textOfDraft(draft)
    if (text === undefined) return setProblem(texts.form.fixFields)
    const wrong = jsonProblem(text)
    if (wrong !== undefined) return setProblem(texts.form.notJson(wrong))
    if (dangerous && typed !== tool.name) return setProblem(texts.run.typeName)
    setProblem(undefined)
    setRun(startRun({ name: tool.name, arguments: text, era }))
  }
  const toJson = (): void => {
    const text = textOfDraft(draft)
    if (text === undefined) return setProblem(texts.form.fixFields)
    setProblem(undefined)
    setJson(text)
  }
  const toForm = (): void => {
    const wrong = jsonProblem(json ?? '')
    if (wrong !== undefined) return setProblem(texts.form.notJson(wrong))
    const next = formOf(tool)
    if (!fill(next, readJson(json ?? ''))) return setProblem(texts.form.doesNotFit)
    setProblem(undefined)
    setDraft(next)
    setJson(undefined)
  }
  return (
    <div class="try">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          start()
        }}
      >
        <fieldset class="modes">
          <legend class="sr-only">{texts.form.mode}</legend>
          <label class="check">
            <input type="radio" name="mode" checked={json === undefined} onChange={toForm} />{' '}
            {texts.form.form}
          </label>
          <label class="check">
            <input type="radio" name="mode" checked={json !== undefined} onChange={toJson} /> JSON
          </label>
        </fieldset>
        {json === undefined ? (
          <Fields draft={draft} />
        ) : (
          <label>
            <span>{texts.calls.arguments}</span>
            <textarea
              class="json"
              rows={12}
              spellcheck={false}
              value={json}
              onInput={({ currentTarget }) => setJson(currentTarget.value)}
            />
          </label>
        )}
        <label class="era">
          <span>{texts.run.era}</span>
          <select
            value={era}
            onChange={({ currentTarget }) =>
              setEra(eras.find((one) => one === currentTarget.value) ?? eras[0])
            }
          >
            {eras.map((one) => (
              <option key={one} value={one}>
                {texts.run.eras[one]}
              </option>
            ))}
          </select>
        </label>
        {dangerous ? (
          <Notice tone="warn">
            <label>
              <span>{texts.run.dangerous}</span>
              <input
                value={typed}
                autocomplete="off"
                spellcheck={false}
                onInput={({ currentTarget }) => setTyped(currentTarget.value)}
              />
            </label>
          </Notice>
        ) : undefined}
        {problem === undefined ? undefined : (
          <p class="bad" role="alert">
            <Foreign text={problem} most={300} />
          </p>
        )}
        <p class="buttons">
          <button class="main" disabled={busy}>
            {me.user === undefined ? texts.run.run : texts.run.runAs(me.user.name ?? me.user.sub)}
          </button>
          <span class="soft">{texts.run.whole}</span>
        </p>
      </form>
      {run === undefined ? undefined : <RunPanel run={run} tool={tool} />}
    </div>
  )
}

function formOf(tool: ToolDetail): ValueDraft {
  try {
    return draftOf(planOf(readJson(tool.inputSchema)))
  } catch {
    return draftOf(planOf(true))
  }
}

function Fields({ draft }: { readonly draft: ValueDraft }) {
  return isOf(draft, 'object') ? (
    <ObjectFields draft={draft} />
  ) : (
    <Field draft={draft} name={texts.calls.arguments} required />
  )
}

function RunPanel({ run, tool }: { readonly run: Run; readonly tool: ToolDetail }) {
  const current = run.state.value
  const { state, logs, asks, done, error, cancelling } = current
  const logText = useMemo(() => logs.map(({ level, text }) => `${level}: ${text}`).join('\n'), [logs])
  const isOpen = state === 'starting' || state === 'running'
  return (
    <section class="panel" aria-label={texts.run.title}>
      <div class="buttons" role="status">
        {isOpen ? <Progress state={current} /> : undefined}
        {done ? (
          <>
            <OutcomeMark outcome={done.outcome} /> {duration(done.ms)}
          </>
        ) : undefined}
      </div>
      {isOpen ? (
        <p>
          <button type="button" disabled={cancelling} onClick={() => void run.cancel()}>
            {cancelling ? texts.run.cancelling : texts.run.cancel}
          </button>
        </p>
      ) : undefined}
      {asks.map((ask) => (
        <Question key={ask.id} ask={ask} answer={(answer) => run.answer(ask.id, answer)} />
      ))}
      {logText === '' ? undefined : (
        <details>
          <summary>{texts.run.logs(logs.length)}</summary>
          <LongText text={logText} label={texts.run.logs(logs.length)} code />
        </details>
      )}
      {error ? <Failure error={error} /> : undefined}
      {done?.error ? (
        <Notice tone="bad">
          <p>
            {done.error.code === undefined ? '' : `${done.error.code}: `}
            <Foreign text={done.error.message} most={2000} />
          </p>
        </Notice>
      ) : undefined}
      {done?.result === undefined ? undefined : (
        <Result text={done.result} truncated={done.truncated ?? false} />
      )}
      {tool.page && done?.result !== undefined && !done.truncated ? (
        <App key={done.result} tool={tool} request={run.request} result={done.result} />
      ) : undefined}
      {done ? (
        <p>
          <a href={hrefOf(['calls'], { tool: tool.name })}>{texts.run.itsCalls}</a>
        </p>
      ) : undefined}
    </section>
  )
}

const tickMs = 1000

function Progress({ state: { startedAt, progress } }: { readonly state: RunState }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), tickMs)
    return () => clearInterval(timer)
  }, [])
  const share = progress?.total
    ? Math.min(100, Math.floor((progress.progress / progress.total) * 100))
    : undefined
  return (
    <>
      <span>{texts.run.running}</span>
      {/* Hides the element from screen readers, which would announce every change. */}
      <span aria-hidden="true">{duration(Math.max(0, Math.floor((now - startedAt) / 1000) * 1000))}</span>
      {share === undefined ? undefined : (
        <>
          <progress value={share} max={100} aria-label={texts.run.progress} /> {share} %
        </>
      )}
      {share === undefined && progress ? <span>{progress.progress}</span> : undefined}
      {progress?.message === undefined ? undefined : <Foreign text={progress.message} most={200} />}
    </>
  )
}
