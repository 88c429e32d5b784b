/** A request from a server to the user during a call: a form, or an external page. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AskAnswer, TryEvent } from '../../api.ts'
import { ApiError } from '../data/client.ts'
import { readJson } from '../data/json-text.ts'
import { Failure } from '../parts/notices.tsx'
import { Foreign, LongText } from '../parts/text.tsx'
import { texts } from '../texts.ts'
import { draftOf, isOf, textOfDraft } from './draft.ts'
import { Field, ObjectFields } from './fields.tsx'
import { planOf } from './plan.ts'

type Ask = Extract<TryEvent, { readonly type: 'ask' }>

export function Question({
  ask,
  answer,
}: {
  readonly ask: Ask
  readonly answer: (answer: AskAnswer) => Promise<void>
}) {
  const [draft] = useState(() => draftOf(planOf(schemaOf(ask))))
  const [error, setError] = useState<ApiError | undefined>()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const give = (action: AskAnswer['action']): void => {
    const content = action === 'accept' && ask.mode === 'form' ? textOfDraft(draft) : undefined
    if (action === 'accept' && ask.mode === 'form' && content === undefined) return
    answer({ action, ...(content === undefined ? {} : { content }) }).catch((error: unknown) =>
      setError(error instanceof ApiError ? error : new ApiError(0, 'page', String(error))),
    )
  }
  return (
    <form
      class="panel question"
      aria-label={texts.ask.title(ask.backend)}
      onSubmit={(event) => {
        event.preventDefault()
        give('accept')
      }}
    >
      <h2 ref={heading} tabIndex={-1}>
        {texts.ask.from} <Foreign text={ask.backend} most={60} />
      </h2>
      <LongText text={ask.message} label={texts.ask.message} />
      <p class="soft">{texts.ask.warning}</p>
      {ask.mode === 'url' ? (
        <Link url={ask.url ?? ''} />
      ) : isOf(draft, 'object') ? (
        <ObjectFields draft={draft} />
      ) : (
        <Field draft={draft} name={texts.ask.content} required />
      )}
      {error ? <Failure error={error} /> : undefined}
      <p class="buttons">
        <button class="main">{ask.mode === 'url' ? texts.ask.visited : texts.ask.send}</button>
        <button type="button" onClick={() => give('decline')}>
          {texts.ask.decline}
        </button>
        <button type="button" onClick={() => give('cancel')}>
          {texts.ask.cancel}
        </button>
      </p>
    </form>
  )
}

function schemaOf(ask: Ask): unknown {
  try {
    return readJson(ask.schema ?? '{"type":"object"}')
  } catch {
    return true
  }
}

/** Shows the host before the user opens the page. Only web addresses become links. */
function Link({ url }: { readonly url: string }) {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    return (
      <p class="bad">
        {texts.ask.notWeb} <Foreign text={url} most={300} />
      </p>
    )
  return (
    <>
      <p>
        {texts.ask.host}{' '}
        <strong>
          <Foreign text={parsed.host} most={200} />
        </strong>
      </p>
      <p>
        <a class="button" href={parsed.href} target="_blank" rel="noopener noreferrer">
          {texts.ask.visit}
        </a>
      </p>
    </>
  )
}
