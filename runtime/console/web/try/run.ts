/** One run of a tool. Starts, follows, answers and cancels the run through the API. */
import { signal } from '@preact/signals'
import type { AskAnswer, TryEvent, TryRequest } from '../../api.ts'
import { ApiError, request, send } from '../data/client.ts'
import { readEvents } from '../data/server-events.ts'
import { pathPart } from '../shell/router.ts'

const mostLogs = 100
const repaintMs = 500

type Ask = Extract<TryEvent, { readonly type: 'ask' }>
type Done = Extract<TryEvent, { readonly type: 'done' }>

export interface RunState {
  readonly state: 'starting' | 'running' | 'done' | 'failed'
  readonly startedAt: number
  readonly progress?: Extract<TryEvent, { readonly type: 'progress' }>
  readonly logs: readonly { readonly level: string; readonly text: string }[]
  /** Unanswered requests from the server to the user, oldest first. */
  readonly asks: readonly Ask[]
  readonly done?: Done
  readonly error?: ApiError
  readonly cancelling: boolean
}

export interface Run {
  readonly request: TryRequest
  readonly state: { readonly value: RunState }
  answer(ask: string, answer: AskAnswer): Promise<void>
  cancel(): Promise<void>
  /** Stops following. The server cancels an abandoned run. */
  leave(): void
}

export function startRun(body: TryRequest): Run {
  const state = signal<RunState>({
    state: 'starting',
    startedAt: Date.now(),
    logs: [],
    asks: [],
    cancelling: false,
  })
  const left = new AbortController()
  let id: string | undefined
  const change = (part: Partial<RunState>): void => {
    state.value = { ...state.peek(), ...part }
  }
  let next: Partial<RunState> = {}
  let timer: ReturnType<typeof setTimeout> | undefined
  const show = (): void => {
    clearTimeout(timer)
    timer = undefined
    change(next)
    if (!next.done) next = {}
  }
  const fail = (error: unknown): void => {
    clearTimeout(timer)
    if (left.signal.aborted) return
    const shown = error instanceof ApiError ? error : new ApiError(0, 'page', String(error))
    change({ state: 'failed', error: shown, asks: [] })
  }
  const end = async (run: string): Promise<void> => {
    await send('DELETE', `tries/${pathPart(run)}`).catch((error: unknown) => {
      // The run has ended. The event stream still delivers its result.
      if (!(error instanceof ApiError && error.status === 404)) throw error
    })
  }
  const follow = async (): Promise<void> => {
    const started = await send<{ readonly id: string }>('POST', 'tries', body)
    if (!started) throw new ApiError(0, 'page', 'The server did not return a name for the run.')
    id = started.id
    if (left.signal.aborted) return void end(id).catch(() => undefined)
    change({ state: 'running' })
    // The user cancelled before the run had an id.
    if (state.peek().cancelling) await end(id)
    const headers = { accept: 'text/event-stream' }
    const response = await request(`tries/${pathPart(id)}/events`, { headers, signal: left.signal })
    for await (const { data } of readEvents(response.body ?? new ReadableStream())) {
      const event = JSON.parse(data) as TryEvent
      next = { ...next, ...afterEvent({ ...state.peek(), ...next }, event) }
      // Throttles progress updates. Shows results and requests to the user immediately.
      if (event.type === 'ask' || event.type === 'done') show()
      else timer ??= setTimeout(show, repaintMs)
      if (next.done) return
    }
    throw new ApiError(0, 'connection', 'The connection ended before the result arrived.')
  }
  follow().catch(fail)
  return {
    request: body,
    state,
    async answer(ask, answer) {
      await send('POST', `tries/${pathPart(id ?? '')}/answers/${pathPart(ask)}`, answer)
      change({ asks: state.peek().asks.filter((one) => one.id !== ask) })
    },
    async cancel() {
      change({ cancelling: true })
      // `follow` cancels a run without an id as soon as the id arrives.
      if (id !== undefined) await end(id).catch(fail)
    },
    leave() {
      const { state: current } = state.peek()
      left.abort()
      if (id !== undefined && current === 'running') end(id).catch(() => undefined)
    },
  }
}

function afterEvent(last: RunState, event: TryEvent): Partial<RunState> {
  switch (event.type) {
    case 'progress':
      return { progress: event }
    case 'log':
      return { logs: [...last.logs, event].slice(-mostLogs) }
    case 'ask':
      return { asks: [...last.asks.filter(({ id }) => id !== event.id), event] }
    default:
      return { state: 'done', done: event, asks: [] }
  }
}
