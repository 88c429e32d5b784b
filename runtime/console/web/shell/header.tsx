/** The page header: the server, the pages, the live state with a pause button, and the signed-in user. */
import { useEffect, useState } from 'preact/hooks'
import type { Me } from '../../api.ts'
import { liveState, paused } from '../data/live.ts'
import { Mark } from '../parts/marks.tsx'
import { Foreign } from '../parts/text.tsx'
import { texts } from '../texts.ts'
import { maySee, pageNames } from './permissions.ts'
import { hrefOf, route } from './router.ts'

export function Header({ me, page }: { readonly me: Me; readonly page: string }) {
  const [open, setOpen] = useState(false)
  const { rest } = route.value
  useEffect(() => setOpen(false), [page, rest.join('/')])
  return (
    <header>
      <div class="bar">
        <span class="product">Gatehouse</span>
        <span class="server">
          <Foreign text={me.server} most={60} />
        </span>
        <Live />
        <Who me={me} />
        <button
          type="button"
          class="menu"
          aria-expanded={open}
          aria-controls="pages"
          onClick={() => setOpen(!open)}
        >
          {texts.shell.menu}
        </button>
      </div>
      <nav id="pages" aria-label={texts.shell.pages} class={open ? 'open' : undefined}>
        <ul>
          {pageNames
            .filter((name) => maySee(me, name))
            .map((name) => (
              <li key={name}>
                <a href={hrefOf([name])} aria-current={name === page ? 'page' : undefined}>
                  {texts.pages[name]}
                </a>
              </li>
            ))}
        </ul>
      </nav>
    </header>
  )
}

function Live() {
  const state = liveState.value
  if (state === 'off') return null
  const isPaused = paused.value
  const word = isPaused ? texts.live.paused : texts.live[state]
  return (
    <span class="live">
      {state === 'open' && !isPaused ? (
        <Mark shape="disc" tone="good" word={word} />
      ) : (
        <Mark shape="ring" tone={state === 'lost' ? 'warn' : 'soft'} word={word} />
      )}
      <button type="button" onClick={() => (paused.value = !isPaused)}>
        {isPaused ? texts.live.resume : texts.live.pause}
      </button>
    </span>
  )
}

function Who({ me }: { readonly me: Me }) {
  if (me.anonymous || me.user === undefined) return <span class="who soft">{texts.shell.noLogin}</span>
  const roles = me.roles.map((role) => texts.roles[role] ?? role).join(', ') || texts.roles.none
  return (
    <a class="who" href={hrefOf(['accounts'])}>
      <Foreign text={me.user.name ?? me.user.sub} most={40} /> <span class="soft">({roles})</span>
    </a>
  )
}
