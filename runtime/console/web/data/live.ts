/**
 * The event stream, which each browser opens only once: the tab with the lock reads the stream and forwards events to
 * the other tabs. Pages receive events at most twice a second, and receive no events while they are paused.
 */
import { effect, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Permission, StreamEvent } from '../../api.ts'
import { ApiError, request, session } from './client.ts'
import { readEvents } from './server-events.ts'

export const liveState = signal<'off' | 'connecting' | 'open' | 'lost'>('off')
export const paused = signal(false)

const flushMs = 500
const maxWaiting = 1000
const longestRetryMs = 30_000

type Listener = (events: readonly StreamEvent[]) => void
const listeners = new Set<Listener>()
let waiting: StreamEvent[] = []
let timer: ReturnType<typeof setTimeout> | undefined
/** Signals that events were dropped or arrived during a pause, so pages must reload their lists. */
let missed = false

/**
 * Calls `listener` every half second with the events that have arrived. Returns a function that removes the listener.
 */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Reloads when an event of this type arrives, or when events may have been missed. */
export function useReloadOn(type: StreamEvent['type'], reload: () => void, isOn = true): void {
  useEffect(() => {
    if (!isOn) return undefined
    return onEvents((events) => {
      if (events.some((event) => event.type === type || event.type === 'gap')) reload()
    })
  }, [type, reload, isOn])
}

function accept(event: StreamEvent): void {
  if (paused.peek() || waiting.length >= maxWaiting) missed = true
  else waiting.push(event)
  if (!paused.peek()) timer ??= setTimeout(flush, flushMs)
}

function flush(): void {
  timer = undefined
  const events: readonly StreamEvent[] = missed ? [{ type: 'gap' }] : waiting
  waiting = []
  missed = false
  if (events.length > 0) for (const listener of listeners) listener(events)
}

effect(() => {
  if (!paused.value && missed) timer ??= setTimeout(flush, 0)
})

const topicOf: Readonly<Partial<Record<Permission, string>>> = {
  'calls.own': 'calls',
  'calls.all': 'calls',
  overview: 'health',
  tools: 'catalog',
  'sessions.all': 'sessions',
}

type Message = { readonly event: StreamEvent } | { readonly state: 'connecting' | 'open' | 'lost' }

/** Starts reading for the signed-in user. Returns a function that stops reading. */
export function startLive(sub: string, permissions: readonly Permission[]): () => void {
  const topics = [...new Set(permissions.map((one) => topicOf[one]).filter((one) => one !== undefined))]
  if (topics.length === 0) return () => undefined
  const ended = new AbortController()
  // Each user has a separate channel, because another tab may still show another user's session.
  const name = `gatehouse-console ${location.pathname} ${sub}`
  const channel = new BroadcastChannel(name)
  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => take(data))
  const tell = (message: Message): void => {
    take(message)
    channel.postMessage(message)
  }
  liveState.value = 'connecting'
  const lead = (): Promise<void> => readUntil(ended.signal, topics.join(','), tell)
  if (navigator.locks) navigator.locks.request(name, { signal: ended.signal }, lead).catch(() => undefined)
  else void lead()
  return () => {
    ended.abort()
    channel.close()
    liveState.value = 'off'
  }
}

function take(message: Message): void {
  if ('state' in message) liveState.value = message.state
  else {
    // An event from the reading tab means that the stream is open.
    liveState.value = 'open'
    accept(message.event)
  }
}

async function readUntil(
  ended: AbortSignal,
  topics: string,
  tell: (message: Message) => void,
): Promise<void> {
  let last: string | undefined
  let failures = 0
  while (!ended.aborted) {
    let waitMs = Math.min(longestRetryMs, 1000 * 2 ** failures)
    try {
      const headers = {
        accept: 'text/event-stream',
        ...(last === undefined ? {} : { 'last-event-id': last }),
      }
      const response = await request(`stream?topics=${topics}`, { headers, signal: ended })
      tell({ state: 'open' })
      failures = 0
      waitMs = 1000
      for await (const { id, data } of readEvents(response.body ?? new ReadableStream())) {
        last = id ?? last
        const event = JSON.parse(data) as StreamEvent
        if (event.type === 'bye') waitMs = event.retryMs
        else tell({ event })
      }
    } catch (error) {
      if (ended.aborted) return
      // Stops, because the user is signed out or lacks a permission, so another attempt would fail as well.
      if (error instanceof ApiError && (error.status === 401 || error.status === 403))
        return tell({ state: 'lost' })
    }
    tell({ state: 'lost' })
    failures += 1
    await pause(waitMs, ended)
  }
}

/** Waits until the time is up, the browser is back online, or the user retries. */
function pause(ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      for (const [target, name] of targets) target.removeEventListener(name, done)
      resolve()
    }
    const targets = [
      [window, 'online'],
      [window, 'gatehouse-retry'],
      [ended, 'abort'],
    ] as const satisfies readonly (readonly [EventTarget, string])[]
    const timer = setTimeout(done, ms)
    for (const [target, name] of targets) target.addEventListener(name, done)
  })
}

/** Reconnects immediately and reloads the signed-in user. */
export function retryNow(): void {
  window.dispatchEvent(new Event('gatehouse-retry'))
  if (session.peek().state === 'ready') accept({ type: 'gap' })
}
