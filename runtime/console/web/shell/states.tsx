/** Global states: signed out, no role, expired session, lost connection. Each state shows the next step. */
import { useState } from 'preact/hooks'
import type { Me } from '../../api.ts'
import { type ApiError, loadMe, loginUrl, lostSince, session } from '../data/client.ts'
import { needsLaunch, storeLaunch } from '../data/launch.ts'
import { paused, retryNow } from '../data/live.ts'
import { shortTime } from '../parts/format.ts'
import { Notice } from '../parts/notices.tsx'
import { Foreign } from '../parts/text.tsx'
import { texts } from '../texts.ts'
import { hrefOf } from './router.ts'
import type { PageName } from './permissions.ts'

export function SignedOut() {
  return (
    <main id="main" class="alone">
      <h1>{texts.states.signedOut}</h1>
      {needsLaunch ? (
        <LaunchForm />
      ) : (
        <>
          <p>{texts.states.signedOutWhy}</p>
          <p>
            <a class="button main" href={loginUrl()}>
              {texts.states.signIn}
            </a>
          </p>
        </>
      )}
    </main>
  )
}

/** Signs in with the printed address, for a console without a login page. */
function LaunchForm() {
  const [problem, setProblem] = useState('')
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const address = new FormData(form).get('address')
    if (typeof address !== 'string' || !storeLaunch(address)) return setProblem(texts.states.launchInvalid)
    await loadMe()
    if (session.peek().state !== 'ready') setProblem(texts.states.launchRefused)
  }
  return (
    <form class="launch" onSubmit={(event) => void submit(event)}>
      <p>{texts.states.launchWhy}</p>
      <label>
        <span>{texts.states.launchAddress}</span>
        <input type="text" name="address" autocomplete="off" spellcheck={false} required />
      </label>
      <p class="bad" role="status">
        {problem}
      </p>
      <button type="submit" class="main">
        {texts.states.signIn}
      </button>
    </form>
  )
}

export function Refused({ error }: { readonly error: ApiError }) {
  const lost = error.status === 0
  return (
    <main id="main" class="alone">
      <h1>{lost ? texts.states.noConnection : texts.states.refused}</h1>
      <p>
        <Foreign text={error.message} most={500} />
      </p>
      <p>{lost ? texts.states.connectionStep : texts.states.refusedStep}</p>
      <p>
        <button type="button" class="main" onClick={() => void loadMe()}>
          {texts.states.tryAgain}
        </button>
      </p>
    </main>
  )
}

export function Banners({ me }: { readonly me: Me }) {
  const { state } = session.value
  const lost = lostSince.value
  const noRole = me.roles.length === 0 && !me.anonymous
  if (state !== 'expired' && lost === undefined && !noRole) return null
  return (
    <section class="banners" aria-label={texts.shell.notices}>
      {state === 'expired' ? (
        <Notice tone="warn" alert>
          <p>{texts.states.expired}</p>
          {needsLaunch ? (
            <LaunchForm />
          ) : (
            <p>
              <a class="button main" href={loginUrl()}>
                {texts.states.signInAgain}
              </a>
            </p>
          )}
        </Notice>
      ) : undefined}
      {lost === undefined ? undefined : (
        <Notice tone="warn" alert>
          <p>{texts.states.lost(shortTime(new Date(lost).toISOString(), 'seconds'))}</p>
          <p>
            <button
              type="button"
              onClick={() => {
                paused.value = false
                retryNow()
              }}
            >
              {texts.states.tryNow}
            </button>
          </p>
        </Notice>
      )}
      {noRole ? <NoRole /> : undefined}
    </section>
  )
}

function NoRole() {
  return (
    <Notice tone="plain">
      <p>
        {texts.states.noRole} {texts.states.noRoleStep}
      </p>
    </Notice>
  )
}

export function NotPermitted({ page }: { readonly page: PageName }) {
  return (
    <>
      <h1 tabIndex={-1}>{texts.pages[page]}</h1>
      <Notice tone="plain">
        <p>{texts.states.needsRole(texts.needs[page])}</p>
        <p>{texts.states.askOperator}</p>
      </Notice>
    </>
  )
}

export function NotFound() {
  return (
    <>
      <h1 tabIndex={-1}>{texts.states.notFound}</h1>
      <p>
        {texts.states.notFoundStep} <a href={hrefOf(['overview'])}>{texts.pages.overview}</a>
      </p>
    </>
  )
}
