/** One tool: description, schemas, raw definition, and a form to try it. */
import { useEffect, useState } from 'preact/hooks'
import type { ComponentType } from 'preact'
import type { Me, ToolDetail } from '../../api.ts'
import { get } from '../data/client.ts'
import { indented } from '../data/json-text.ts'
import { useResource } from '../data/use-resource.ts'
import { count } from '../parts/format.ts'
import { PinMark } from '../parts/marks.tsx'
import { Loaded } from '../parts/notices.tsx'
import { Foreign, LongText } from '../parts/text.tsx'
import { may } from '../shell/permissions.ts'
import { hrefOf, pathPart } from '../shell/router.ts'
import { texts } from '../texts.ts'
import { Flags, hintsOf } from './tool-flags.tsx'

const tabs = ['description', 'input', 'output', 'raw', 'changes', 'try'] as const
type Tab = (typeof tabs)[number]

export function ToolPage({
  me,
  name,
  tab,
}: {
  readonly me: Me
  readonly name: string
  readonly tab: string
}) {
  const path = `tools/${pathPart(name)}`
  const resource = useResource(path, (signal) => get<ToolDetail>(path, signal))
  return (
    <>
      <p class="crumb">
        <a href={hrefOf(['tools'])}>{texts.pages.tools}</a>
      </p>
      <div class="title">
        <h1 tabIndex={-1}>
          <Foreign text={name} />
        </h1>
      </div>
      <Loaded resource={resource}>{(tool) => <Detail me={me} tool={tool} asked={tab} />}</Loaded>
    </>
  )
}

function Detail({ me, tool, asked }: { readonly me: Me; readonly tool: ToolDetail; readonly asked: string }) {
  const shown = tabs.filter((tab) => isThere(tab, me, tool))
  const current = shown.find((tab) => tab === asked) ?? 'description'
  const hints = hintsOf(tool.hints)
  return (
    <>
      <p class="tool-facts">
        <span>
          <span class="soft">{texts.tools.origin}</span>{' '}
          <Foreign text={tool.backend || texts.tools.server} most={60} /> /{' '}
          <Foreign text={tool.original} most={100} />
        </span>
        {tool.alias === undefined ? undefined : (
          <span>
            <span class="soft">{texts.tools.alias}</span> <Foreign text={tool.alias} most={128} />
          </span>
        )}
        <span>
          ~{count(tool.tokens)} <span class="soft">{texts.tools.tokens}</span>
        </span>
        {hints === '' ? undefined : (
          <span>
            <span class="soft">{texts.tools.saysOfItself}</span> {hints}
          </span>
        )}
        <PinMark pin={tool.pin} />
        <Flags tool={tool} />
      </p>
      {tool.suspicious ? <p class="soft">{texts.text.suspiciousWhy}</p> : undefined}
      <nav aria-label={texts.tools.parts} class="tabs">
        <ul>
          {shown.map((tab) => (
            <li key={tab}>
              <a href={hrefOf(['tools', tool.name, tab])} aria-current={tab === current ? 'page' : undefined}>
                {texts.tools.tabs[tab]}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Part me={me} tool={tool} tab={current} />
    </>
  )
}

function isThere(tab: Tab, me: Me, tool: ToolDetail): boolean {
  if (tab === 'output') return tool.outputSchema !== undefined
  if (tab === 'changes') return (tool.drift ?? []).length > 0
  return tab !== 'try' || (may(me, 'try') && tool.hidden === undefined)
}

function Part({ me, tool, tab }: { readonly me: Me; readonly tool: ToolDetail; readonly tab: Tab }) {
  switch (tab) {
    case 'description':
      return (
        <>
          {tool.title === undefined ? undefined : (
            <p>
              <strong>
                <Foreign text={tool.title} />
              </strong>
            </p>
          )}
          {tool.description === '' ? (
            <p class="soft">{texts.tools.noDescription}</p>
          ) : (
            <LongText text={tool.description} label={texts.tools.description} />
          )}
        </>
      )
    case 'input':
      return <LongText text={indented(tool.inputSchema)} label={texts.tools.tabs.input} code />
    case 'output':
      return <LongText text={indented(tool.outputSchema ?? '')} label={texts.tools.tabs.output} code />
    case 'raw':
      return <LongText text={indented(tool.raw)} label={texts.tools.tabs.raw} code />
    case 'changes':
      return (
        <>
          {may(me, 'overview') ? (
            <p>
              <a href={hrefOf(['pins', tool.backend, 'tool', tool.original])}>{texts.pins.review}</a>
            </p>
          ) : undefined}
          {(tool.drift ?? []).map(({ part, diff }) => (
            <section key={part}>
              <h2>
                <Foreign text={part} most={60} />
              </h2>
              <LongText text={diff} label={part} code />
            </section>
          ))}
        </>
      )
    default:
      return <TryLater me={me} tool={tool} />
  }
}

type Try = ComponentType<{ readonly me: Me; readonly tool: ToolDetail }>
const loaded: { Try?: Try } = {}

/** Loads the form on demand. */
function TryLater(props: { readonly me: Me; readonly tool: ToolDetail }) {
  const [state, setState] = useState<'loading' | 'ready' | 'failed'>(loaded.Try ? 'ready' : 'loading')
  useEffect(() => {
    if (loaded.Try) return
    import('../try/try.tsx').then(
      ({ TryTool }) => {
        loaded.Try = TryTool
        setState('ready')
      },
      () => setState('failed'),
    )
  }, [])
  const { Try } = loaded
  if (Try) return <Try {...props} />
  return <p class="soft">{state === 'failed' ? texts.states.scriptMissing : texts.states.loading}</p>
}
