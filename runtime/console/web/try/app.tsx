/**
 * The page of an app (MCP Apps), in a sandboxed frame with an opaque origin. The page cannot reach the console. It can
 * ask to call tools of its own server, and the user decides about each call.
 */
import { effect } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AppRequest, ToolDetail, ToolList, TryRequest } from '../../api.ts'
import { ApiError, get, queryOf, send } from '../data/client.ts'
import { indented, readJson } from '../data/json-text.ts'
import { Failure, Notice } from '../parts/notices.tsx'
import { Foreign, LongText } from '../parts/text.tsx'
import { pathPart } from '../shell/router.ts'
import { texts } from '../texts.ts'
import { AppBridge, type AppCall } from './app-bridge.ts'
import { type RunState, startRun } from './run.ts'

interface AppProps {
  readonly tool: ToolDetail
  readonly request: TryRequest
  /** JSON text of the result. */
  readonly result: string
}

/** A button that opens the app. Opening a page is the user's decision, because its scripts run in the browser. */
export function App({ tool, request, result }: AppProps) {
  const [path, setPath] = useState<string>()
  const [state, setState] = useState<'idle' | 'busy' | ApiError>('idle')
  const open = async (): Promise<void> => {
    setState('busy')
    try {
      const body: AppRequest = { name: tool.name }
      const opened = await send<{ readonly path: string }>('POST', 'apps', body)
      setPath(opened?.path)
    } catch (error) {
      setState(error instanceof ApiError ? error : new ApiError(0, 'page', String(error)))
    }
  }
  if (path !== undefined) return <Frame path={path} tool={tool} request={request} result={result} />
  return (
    <div>
      {state instanceof ApiError ? <Failure error={state} /> : undefined}
      <p class="buttons">
        <button type="button" disabled={state === 'busy'} onClick={() => void open()}>
          {texts.app.open}
        </button>
        <span class="soft">{texts.app.what(tool.backend)}</span>
      </p>
    </div>
  )
}

const firstHeight = 320

function Frame({ path, tool, request, result }: AppProps & { readonly path: string }) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [height, setHeight] = useState(firstHeight)
  const [calls, setCalls] = useState<readonly AppCall[]>([])
  useEffect(() => {
    const element = frame.current
    const target = element?.contentWindow
    if (!element || !target) return undefined
    const left = new AbortController()
    const bridge = new AppBridge({
      frame: target,
      tool: readJson(tool.raw),
      input: readJson(request.arguments),
      result: readJson(result),
      theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
      call: async (name, args) => {
        const called = await ownTool(tool, name)
        return end({ name: called, arguments: args, era: request.era }, left.signal)
      },
      onCalls: setCalls,
      onHeight: setHeight,
    })
    const receive = (event: MessageEvent<unknown>): void => bridge.receive(event)
    window.addEventListener('message', receive)
    element.src = new URL(path, new URL('./', import.meta.url)).href
    return () => {
      window.removeEventListener('message', receive)
      left.abort()
    }
  }, [path])
  const [call] = calls
  return (
    <section aria-label={texts.app.title}>
      {call ? <Request key={call.key} call={call} /> : undefined}
      <iframe
        ref={frame}
        class="app"
        title={texts.app.frame(tool.backend)}
        sandbox="allow-scripts"
        referrerpolicy="no-referrer"
        height={height}
      />
    </section>
  )
}

/** The page decides when a request appears. A click on the page must not land on the button. */
const allowAfterMs = 700

function Request({ call }: { readonly call: AppCall }) {
  const [canAllow, setCanAllow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setCanAllow(true), allowAfterMs)
    return () => clearTimeout(timer)
  }, [])
  return (
    <Notice tone="warn">
      <p>
        {texts.app.asks} <Foreign text={call.name} most={100} />
      </p>
      <LongText text={indented(call.arguments)} label={texts.calls.arguments} code />
      <p class="buttons">
        <button type="button" class="main" disabled={!canAllow} onClick={() => call.allow()}>
          {texts.app.allow}
        </button>
        <button type="button" onClick={() => call.refuse()}>
          {texts.app.refuse}
        </button>
      </p>
    </Notice>
  )
}

/**
 * Returns the name of a tool that the app may call: a tool of the same backend that is not only for models. Rejects for a
 * destructive tool, because the user must type the name of such a tool.
 */
async function ownTool({ backend }: ToolDetail, name: string): Promise<string> {
  const { items } = await get<ToolList>(`tools${queryOf({ backend, text: name, limit: '200' })}`)
  const own = items.filter((tool) => tool.backend === backend && tool.hidden === undefined)
  const found = own.find(({ original }) => original === name) ?? own.find((tool) => tool.name === name)
  if (!found) throw new Error('The app’s server does not offer this tool.')
  if (found.hints.destructive === true)
    throw new Error('The tool is marked as destructive. Run it on its own page.')
  const { raw } = await get<ToolDetail>(`tools/${pathPart(found.name)}`)
  if (!isForApp(readJson(raw))) throw new Error('The tool is not available to apps.')
  return found.name
}

function isForApp(tool: unknown): boolean {
  const { _meta } = tool as { readonly _meta?: { readonly ui?: { readonly visibility?: unknown } } }
  const visibility = _meta?.ui?.visibility
  return !Array.isArray(visibility) || visibility.includes('app')
}

/** Runs a tool to its end. Rejects if the run fails, needs an answer from the user, or the app is closed. */
function end(request: TryRequest, signal: AbortSignal): Promise<NonNullable<RunState['done']>> {
  const run = startRun(request)
  return new Promise((resolve, reject) => {
    const stop = effect(() => {
      const { done, error, asks } = run.state.value
      if (done) resolve(done)
      else if (error) reject(error)
      else if (asks.length > 0) reject(new Error('The tool asks the user a question.'))
      else return
      run.leave()
      queueMicrotask(() => stop())
    })
    signal.addEventListener('abort', () => {
      run.leave()
      stop()
      reject(new Error('The app was closed.'))
    })
  })
}
