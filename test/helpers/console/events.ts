/** Reads server-sent events one by one, with their names and ids. */
import { createParser } from 'eventsource-parser'

export interface SentEvent {
  readonly id: string | undefined
  readonly type: string
  readonly data: Record<string, unknown>
}

export interface EventReader {
  readonly status: number
  /** Returns the next event of a type and skips the others. Rejects if the stream ends first. */
  next(type: string): Promise<SentEvent>
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>
  close(): void
}

export async function readEvents(url: string, headers: Record<string, string>): Promise<EventReader> {
  const abort = new AbortController()
  const response = await fetch(url, { headers, signal: abort.signal })
  const events: SentEvent[] = []
  let wake = (): void => {}
  let isOver = false
  const parser = createParser({
    onEvent({ id, event = 'message', data }) {
      events.push({ id, type: event, data: JSON.parse(data) as Record<string, unknown> })
      wake()
    },
  })
  const ended = (async () => {
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body ?? [])
        parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }))
    } catch {
      // Closed by the test, or interrupted.
    }
    isOver = true
    wake()
  })()
  return {
    status: response.status,
    ended,
    async next(type) {
      for (;;) {
        const event = events.shift()
        if (event?.type === type) return event
        if (event) continue
        if (isOver) throw new Error(`the stream ended before an event ${type}`)
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
    close: () => abort.abort(),
  }
}
