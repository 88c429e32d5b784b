/** Notices for empty, loading and failed pages. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type ApiError, loginUrl } from '../data/client.ts'
import type { FetchedResource } from '../data/use-resource.ts'
import { texts } from '../texts.ts'
import { Foreign } from './text.tsx'

export function Notice({
  tone,
  alert = false,
  children,
}: {
  readonly tone: 'bad' | 'warn' | 'plain'
  /** Makes screen readers announce the notice when it appears. */
  readonly alert?: boolean
  readonly children: ComponentChildren
}) {
  return (
    <div class={`notice ${tone}`} role={alert ? 'alert' : undefined}>
      {children}
    </div>
  )
}

export function Failure({
  error,
  retry,
}: {
  readonly error: ApiError
  readonly retry?: (() => void) | undefined
}) {
  const step = nextStep(error)
  return (
    <Notice tone="bad" alert>
      <p>
        <Foreign text={error.message} most={500} />
      </p>
      {step === undefined ? undefined : <p>{step}</p>}
      {needsFreshLogin(error) ? (
        <p>
          <a class="button" href={loginUrl({ again: true })}>
            {texts.states.signInAgain}
          </a>
        </p>
      ) : undefined}
      {retry ? (
        <p>
          <button type="button" onClick={retry}>
            {texts.states.tryAgain}
          </button>
        </p>
      ) : undefined}
    </Notice>
  )
}

function needsFreshLogin({ code }: ApiError): boolean {
  return code.toLowerCase() === 'login_too_old'
}

function nextStep(error: ApiError): string | undefined {
  if (needsFreshLogin(error)) return texts.states.loginTooOld
  if (error.status === 0) return texts.states.connectionStep
  if (error.status === 403) return texts.states.askOperator
  if (error.status === 404) return texts.states.notThere
  if (error.status === 429 || error.status === 503) return texts.states.busy
  return error.status >= 500 ? texts.states.serverStep : undefined
}

/** Shows the page below any error once data is loaded, and marks it as busy during a reload. */
export function Loaded<T>({
  resource,
  children,
}: {
  readonly resource: FetchedResource<T>
  readonly children: (data: T) => ComponentChildren
}) {
  const { data, error, loading, reload } = resource
  return (
    <>
      {error ? <Failure error={error} retry={reload} /> : undefined}
      {data !== undefined ? <div aria-busy={loading}>{children(data)}</div> : undefined}
      {data === undefined && loading ? <p class="soft loading">{texts.states.loading}</p> : undefined}
    </>
  )
}

/** Explains why a list is empty, and shows a command that fills it. */
export function Empty({ text, command }: { readonly text: string; readonly command: string }) {
  return (
    <Notice tone="plain">
      <p>{text}</p>
      <Copyable text={command} label={texts.copy.command} />
    </Notice>
  )
}

/** Text with a button that copies it. */
export function Copyable({
  text,
  label,
  block = false,
}: {
  readonly text: string
  readonly label: string
  readonly block?: boolean
}) {
  const [copied, setCopied] = useState<'no' | 'yes' | 'failed'>('no')
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setCopied('yes'),
      () => setCopied('failed'),
    )
  }
  return (
    <div class={block ? 'copyable block' : 'copyable'}>
      <pre class="code" tabIndex={0} role="region" aria-label={label} dir="ltr">
        {text}
      </pre>
      <button type="button" onClick={copy} aria-label={texts.copy.label(label)}>
        {texts.copy[copied]}
      </button>
      <span class="sr-only" role="status">
        {copied === 'no' ? '' : texts.copy[copied]}
      </span>
    </div>
  )
}
