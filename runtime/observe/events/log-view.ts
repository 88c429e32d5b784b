/**
 * Writes events to the log: one line per change, not per call.
 *
 * An event about a lasting problem is logged only when the problem opens, changes or closes. Other events, and flapping
 * problems, are logged a few times a minute. One line then reports the number of further repeats.
 */
import type { Log } from '../../net/index.ts'
import { keyOf, levelOf, messageOf, rowOf } from './rows.ts'
import type { Events, ObservedEvent } from './stream.ts'

export interface EventLogOptions {
  /**
   * Runs `work` once after `ms`; returns a function that cancels it. Default: a timer that does not keep the process
   * alive.
   */
  readonly after?: (ms: number, work: () => void) => () => void
}

export const repeatWindowMs = 60_000
/** Maximum number of lines per window: for events about a problem, and for all other events. */
const shownChanges = 5
const occurrences = 1
const maxWindows = 1_000

interface Window {
  lines: number
  repeated: number
  last: ObservedEvent
  cancel: () => void
}

/** Starts writing. The returned function stops writing and logs the pending repeat counts. */
export function logEvents(
  events: Events,
  log: Log,
  { after = unheldTimer }: EventLogOptions = {},
): () => void {
  const windows = new Map<string, Window>()

  function write({ type, fields, fix }: ObservedEvent, repeated: number): void {
    log[levelOf(type, fields)](messageOf(type, fields), {
      event: type,
      ...fields,
      ...(fix === undefined ? {} : { fix }),
      ...(repeated > 0 ? { repeated } : {}),
    })
  }

  /**
   * Called at the end of a window: logs the number of repeats and starts the next window, or removes the window if
   * there were none.
   */
  function close(key: string, window: Window): void {
    if (window.repeated === 0) {
      windows.delete(key)
      return
    }
    write(window.last, window.repeated)
    window.lines = 1
    window.repeated = 0
    window.cancel = after(repeatWindowMs, () => close(key, window))
  }

  function open(key: string, event: ObservedEvent): Window {
    const window: Window = { lines: 0, repeated: 0, last: event, cancel: () => {} }
    const cancel = after(repeatWindowMs, () => close(key, window))
    window.cancel = cancel
    windows.set(key, window)
    return window
  }

  function onEvent(event: ObservedEvent): void {
    if (event.change === 'same' && !rowOf(event.type).isNews) return
    const name = keyOf(event.type, event.fields)
    const key = windows.has(name) || windows.size < maxWindows ? name : event.type
    const window = windows.get(key) ?? open(key, event)
    window.last = event
    if (window.lines++ < (event.change === undefined ? occurrences : shownChanges)) write(event, 0)
    else window.repeated++
  }

  const stop = events.listen(onEvent)
  return () => {
    stop()
    for (const window of windows.values()) {
      window.cancel()
      if (window.repeated > 0) write(window.last, window.repeated)
    }
    windows.clear()
  }
}

/** Runs `work` once after `ms` without keeping the process alive. Returns a function that cancels it. */
export function unheldTimer(ms: number, work: () => void): () => void {
  const handle = setTimeout(work, ms)
  handle.unref()
  return () => clearTimeout(handle)
}
