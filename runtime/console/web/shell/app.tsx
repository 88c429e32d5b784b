/** The frame around all pages: signed-in user, current page, and global notices. */
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Me } from '../../api.ts'
import { loadMe, session } from '../data/client.ts'
import { startLive } from '../data/live.ts'
import { OverviewPage } from '../pages/overview.tsx'
import { texts } from '../texts.ts'
import { Header } from './header.tsx'
import { isPage, maySee, type PageName, pageNames } from './permissions.ts'
import { route } from './router.ts'
import { Banners, NotFound, NotPermitted, Refused, SignedOut } from './states.tsx'

export interface PageProps {
  readonly me: Me
}

type Page = ComponentType<PageProps>

/** Pages loaded on demand. */
const loaders: Readonly<Record<PageName, Page>> = {
  overview: OverviewPage,
  calls: lazy(() => import('../pages/calls.tsx').then(({ CallsPage }) => CallsPage)),
  tools: lazy(() => import('../pages/tools.tsx').then(({ ToolsPage }) => ToolsPage)),
  pins: lazy(() => import('../pages/pins.tsx').then(({ PinsPage }) => PinsPage)),
  sessions: lazy(() => import('../pages/sessions.tsx').then(({ SessionsPage }) => SessionsPage)),
  tasks: lazy(() => import('../pages/tasks.tsx').then(({ TasksPage }) => TasksPage)),
  policies: lazy(() => import('../pages/policies.tsx').then(({ PoliciesPage }) => PoliciesPage)),
  config: lazy(() => import('../pages/config.tsx').then(({ ConfigPage }) => ConfigPage)),
  connect: lazy(() => import('../pages/connect.tsx').then(({ ConnectPage }) => ConnectPage)),
  accounts: lazy(() => import('../pages/accounts.tsx').then(({ AccountsPage }) => AccountsPage)),
}

/** Loads a component on demand and shows an error when that fails. */
function lazy(load: () => Promise<Page>): Page {
  const loaded: { Page?: Page } = {}
  return (props: PageProps) => {
    const [state, setState] = useState<'loading' | 'loaded' | 'failed'>(loaded.Page ? 'loaded' : 'loading')
    useEffect(() => {
      if (state !== 'loading') return focusHeading()
      load().then(
        (page) => {
          loaded.Page = page
          setState('loaded')
        },
        () => setState('failed'),
      )
    }, [state])
    const { Page } = loaded
    if (Page) return <Page {...props} />
    if (state === 'loading') return <p class="soft loading">{texts.states.loading}</p>
    return (
      <p role="alert">
        {texts.states.scriptMissing}{' '}
        <button type="button" onClick={() => location.reload()}>
          {texts.states.reload}
        </button>
      </p>
    )
  }
}

let waitingForHeading = false

/** Moves the focus to the heading of the new page once it is rendered, for keyboard and screen reader users. */
function focusHeading(): void {
  const heading = document.querySelector<HTMLElement>('main h1')
  if (!waitingForHeading || !heading) return
  waitingForHeading = false
  heading.focus()
}

export function App() {
  useEffect(() => void loadMe(), [])
  const { state, me, error } = session.value
  useEffect(() => {
    if (me && state === 'ready') return startLive(me.user?.sub ?? '', me.permissions)
    return undefined
  }, [me, state])
  if (me) return <Frame me={me} />
  if (state === 'signed-out') return <SignedOut />
  if (error) return <Refused error={error} />
  return (
    <main id="main" class="alone">
      <p class="soft loading">{texts.states.loading}</p>
    </main>
  )
}

function Frame({ me }: { readonly me: Me }) {
  const { page: asked, rest } = route.value
  const first = pageNames.find((name) => maySee(me, name)) ?? 'accounts'
  // An address that does not match a page opens the first page that the user may see.
  const page = asked === 'overview' && !maySee(me, 'overview') ? first : asked
  const main = useRef<HTMLElement>(null)
  // Navigation within a page keeps the focus.
  const place = [page, ...rest.slice(0, 1)].join('/')
  const shown = useRef(place)
  useEffect(() => {
    if (shown.current === place) return
    shown.current = place
    waitingForHeading = true
    focusHeading()
    window.scrollTo(0, 0)
  }, [place])
  useEffect(() => {
    const name = isPage(page) ? texts.pages[page] : texts.states.notFound
    document.title = `${[rest[0]?.slice(0, 60), name, me.server].filter(Boolean).join(' · ')} · Gatehouse`
  }, [place, me.server])
  return (
    <>
      <button class="skip" type="button" onClick={() => main.current?.focus()}>
        {texts.shell.skip}
      </button>
      <Header me={me} page={page} />
      <Banners me={me} />
      <main id="main" tabIndex={-1} ref={main}>
        <Body me={me} page={page} />
      </main>
    </>
  )
}

function Body({ me, page }: { readonly me: Me; readonly page: string }) {
  if (!isPage(page)) return <NotFound />
  if (!maySee(me, page)) return <NotPermitted page={page} />
  const Page = loaders[page]
  return <Page me={me} />
}
