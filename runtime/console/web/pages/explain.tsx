/** Explain: shows step by step whether a caller may perform an action, and the reasons for the decision. */
import { useEffect, useState } from 'preact/hooks'
import type { ExplainResponse, ExplainRequest, Me } from '../../api.ts'
import { ApiError, send } from '../data/client.ts'
import { jsonProblem, readJson } from '../data/json-text.ts'
import { Mark } from '../parts/marks.tsx'
import { Failure } from '../parts/notices.tsx'
import { Foreign } from '../parts/text.tsx'
import { route } from '../shell/router.ts'
import { texts } from '../texts.ts'

const actions = ['call_tool', 'get_prompt', 'read_resource'] as const

interface Draft {
  readonly action: ExplainRequest['action']
  readonly name: string
  readonly claims: string
  readonly arguments: string
}

/** Returns the initial values of the form, from the query of a call's link. */
function draftOf(query: URLSearchParams): Draft {
  const action = actions.find((one) => one === query.get('action')) ?? 'call_tool'
  const caller = query.get('caller')
  const claims = caller ? JSON.stringify({ sub: caller }) : ''
  return { action, name: query.get('name') ?? '', claims, arguments: '' }
}

type State = 'idle' | 'busy' | ApiError | ExplainResponse

export function Explain({ me }: { readonly me: Me }) {
  const { query } = route.value
  const link = [query.get('action'), query.get('name'), query.get('caller')].join(' ')
  const [draft, setDraft] = useState(() => draftOf(query))
  const [state, setState] = useState<State>('idle')
  const [checked, setChecked] = useState(false)
  useEffect(() => {
    setDraft(draftOf(query))
    setState('idle')
  }, [link])
  const problems = problemsOf(draft)
  const ask = async (): Promise<void> => {
    setChecked(true)
    if (Object.values(problems).some((problem) => problem !== undefined)) return
    setState('busy')
    try {
      const answer = await send<ExplainResponse>('POST', 'policies/explain', questionOf(draft))
      setState(answer ?? 'idle')
    } catch (error) {
      setState(error instanceof ApiError ? error : new ApiError(0, 'page', String(error)))
    }
  }
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change })
  return (
    <section class="panel" aria-labelledby="explain">
      <h2 id="explain">{texts.explain.title}</h2>
      <form
        class="explain"
        onSubmit={(event) => {
          event.preventDefault()
          void ask()
        }}
      >
        <label>
          <span>{texts.explain.action}</span>
          <select
            value={draft.action}
            onChange={({ currentTarget }) =>
              set({ action: actions.find((one) => one === currentTarget.value) ?? 'call_tool' })
            }
          >
            {actions.map((one) => (
              <option key={one} value={one}>
                {texts.explain.actions[one]}
              </option>
            ))}
          </select>
        </label>
        <Field
          label={texts.explain.name}
          value={draft.name}
          problem={checked ? problems.name : undefined}
          set={(name) => set({ name })}
        />
        <Field
          label={texts.explain.claims}
          hint={me.user === undefined ? texts.explain.claimsAnonymous : texts.explain.claimsHint}
          value={draft.claims}
          problem={checked ? problems.claims : undefined}
          set={(claims) => set({ claims })}
          json
        />
        <Field
          label={texts.explain.arguments}
          hint={texts.explain.argumentsHint}
          value={draft.arguments}
          problem={checked ? problems.arguments : undefined}
          set={(text) => set({ arguments: text })}
          json
        />
        <button class="main" disabled={state === 'busy'}>
          {texts.explain.ask}
        </button>
      </form>
      <div aria-live="polite">
        {state instanceof ApiError ? <Failure error={state} /> : undefined}
        {typeof state === 'object' && !(state instanceof ApiError) ? <Verdict answer={state} /> : undefined}
      </div>
    </section>
  )
}

function problemsOf(draft: Draft): Readonly<Record<'name' | 'claims' | 'arguments', string | undefined>> {
  return {
    name: draft.name === '' ? texts.explain.nameMissing : undefined,
    claims: objectProblem(draft.claims),
    arguments: objectProblem(draft.arguments),
  }
}

function objectProblem(text: string): string | undefined {
  if (text.trim() === '') return undefined
  const problem = jsonProblem(text)
  if (problem !== undefined) return texts.form.notJson(problem)
  return /^\s*\{/.test(text) ? undefined : texts.explain.notObject
}

function questionOf(draft: Draft): ExplainRequest {
  const { action, name } = draft
  return {
    action,
    name,
    ...(draft.claims.trim() === '' ? {} : { claims: readJson(draft.claims) as Record<string, unknown> }),
    ...(draft.arguments.trim() === '' ? {} : { arguments: draft.arguments }),
  }
}

function Field({
  label,
  hint,
  value,
  problem,
  set,
  json = false,
}: {
  readonly label: string
  readonly hint?: string
  readonly value: string
  readonly problem: string | undefined
  readonly set: (value: string) => void
  readonly json?: boolean
}) {
  const Tag = json ? 'textarea' : 'input'
  return (
    <label>
      <span>
        {label}
        {hint === undefined ? undefined : <span class="soft"> {hint}</span>}
      </span>
      <Tag
        value={value}
        rows={json ? 2 : undefined}
        class={json ? 'json' : undefined}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={problem !== undefined}
        onInput={({ currentTarget }: { readonly currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
          set(currentTarget.value)
        }
      />
      {problem === undefined ? undefined : (
        <span class="bad" role="alert">
          {problem}
        </span>
      )}
    </label>
  )
}

const marks = {
  pass: ['check', 'good'],
  stop: ['barred', 'bad'],
  note: ['dash', 'soft'],
} as const

function Verdict({ answer: { decision, steps } }: { readonly answer: ExplainResponse }) {
  return (
    <div class="verdict">
      <p class="decision">
        <Mark
          shape={decision === 'allow' ? 'check' : decision === 'undecided' ? 'dash' : 'barred'}
          tone={decision === 'allow' ? 'good' : decision === 'undecided' ? 'soft' : 'bad'}
          word={texts.explain.decision[decision]}
        />
      </p>
      <ol>
        {steps.map(({ stage, verdict, message, details = [] }, i) => {
          const [shape, tone] = marks[verdict] ?? marks.note
          return (
            <li key={i}>
              <Mark shape={shape} tone={tone} word={texts.explain.verdict[verdict] ?? verdict} />{' '}
              <strong>
                <Foreign text={stage} most={60} />
              </strong>
              {': '}
              <Foreign text={message} most={1000} />
              {details.length === 0 ? undefined : (
                <ul>
                  {details.slice(0, 200).map((detail, j) => (
                    <li key={j}>
                      <Foreign text={detail} most={1000} />
                    </li>
                  ))}
                </ul>
              )}
            </li>
          )
        })}
      </ol>
    </div>
  )
}
