/**
 * The event stream for one open page.
 *
 * The server never waits for a reader. A slow reader misses events and receives a gap event; a reader that does not
 * catch up is disconnected.
 * Source: HTML Standard, server-sent events.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { registerStream } from '../../net/index.ts'
import type { CallView, StreamEvent } from '../api.ts'
import { asSeenBy, visibleTo } from '../calls/query.ts'
import type { CallRecorder, StoredCall } from '../calls/recorder.ts'
import type { ApiRequest } from '../http/api-route.ts'
import { type Hub, type LoggedEvent, type Topic, topics } from './hub.ts'

const maxReaders = 32
const maxPerVisitor = 8
const maxBehindBytes = 256 * 1024
const heartbeatMs = 5_000
/** Maximum number of heartbeats by which a reader can lag behind. */
const maxLate = 6
const retryMs = 2_000

interface OpenStream {
  readonly owner: string
  check(): void
}

export class Readers {
  readonly #hub: Hub
  readonly #recorder: CallRecorder
  /** Open streams, keyed by the function that closes each stream. */
  readonly #open = new Map<() => void, OpenStream>()

  constructor(hub: Hub, recorder: CallRecorder) {
    this.#hub = hub
    this.#recorder = recorder
  }

  /** Handles `stream`. Throws BAD_REQUEST or TOO_MANY_STREAMS. */
  open(request: ApiRequest): void {
    const wanted = wantedTopics(request)
    const owner = request.visitor.caller.key
    const own = [...this.#open.values()].filter((one) => one.owner === owner).length
    if (own >= maxPerVisitor || this.#open.size >= maxReaders)
      throw new GatehouseError('TOO_MANY_STREAMS', { headers: { 'retry-after': '10' } })
    const { req, res } = request.exchange
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
    const isVisible = visibleTo(request)
    const seen = asSeenBy(this.#recorder, request)
    let isBehind = false
    let late = 0

    const write = (event: StreamEvent, seq: number): void => {
      isBehind ||= res.writableLength > maxBehindBytes
      if (!isBehind) res.write(this.#frame(event, seq))
    }
    const tell = (logged: LoggedEvent): void => {
      if (!wanted.has(logged.topic)) return
      const event = asSeen(logged, isVisible, seen)
      if (event) write(event, logged.seq)
    }
    const onDrain = (): void => {
      if (!isBehind) return
      isBehind = false
      late = 0
      write({ type: 'gap' }, this.#hub.last)
    }
    const beat = (): void => {
      this.#hub.countSessions()
      if (isBehind && ++late > maxLate) res.destroy()
      else if (!isBehind) res.write(': \n\n')
      check()
    }
    const check = (): void =>
      void Promise.resolve(request.visitor.isLive()).then(
        (isLive) => isLive || end(),
        () => end(),
      )
    const end = (): void => {
      if (res.writableEnded) return
      res.end(isBehind ? '' : this.#frame({ type: 'bye', retryMs }, this.#hub.last))
    }

    res.write(`retry: ${retryMs}\n\n`)
    this.#resume(req.headers['last-event-id'], tell, write)
    const stop = this.#hub.listen(tell)
    const timer = setInterval(beat, heartbeatMs).unref()
    this.#open.set(end, { owner, check })
    res.on('drain', onDrain)
    registerStream(res, end)
    res.once('close', () => {
      stop()
      clearInterval(timer)
      this.#open.delete(end)
    })
  }

  #resume(
    last: string | readonly string[] | undefined,
    tell: (logged: LoggedEvent) => void,
    write: (event: StreamEvent, seq: number) => void,
  ): void {
    if (typeof last !== 'string') return
    const [, replica, number] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(last) ?? []
    const missed = replica === this.#recorder.replica ? this.#hub.since(Number(number)) : undefined
    if (missed) for (const logged of missed) tell(logged)
    else write({ type: 'gap' }, this.#hub.last)
  }

  #frame(event: StreamEvent, seq: number): string {
    return `id: ${this.#recorder.replica}-${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
  }

  close(): void {
    for (const end of this.#open.keys()) end()
  }

  /** Closes the streams of visitors whose session or permissions have changed. */
  check(): void {
    for (const { check } of this.#open.values()) check()
  }
}

/** Returns the visible part of an event; undefined when the event contains nothing for this reader. */
function asSeen(
  logged: LoggedEvent,
  isVisible: (stored: StoredCall) => boolean,
  seen: (stored: StoredCall) => CallView,
): StreamEvent | undefined {
  if (logged.topic !== 'calls') return logged.event
  const items = logged.stored.filter(isVisible).map(seen)
  return items.length > 0 ? { type: 'calls', items } : undefined
}

const neededFor = { health: 'overview', sessions: 'overview', catalog: 'tools', calls: 'calls.own' } as const

/** Returns the requested topics that the visitor may see. Throws BAD_REQUEST. */
function wantedTopics({ query, permissions }: ApiRequest): ReadonlySet<Topic> {
  const asked = query.get('topics')?.split(',') ?? topics
  const unknown = asked.find((topic) => !(topics as readonly string[]).includes(topic))
  if (unknown !== undefined)
    throw new GatehouseError('BAD_REQUEST', { detail: `topics must be one or more of ${topics.join(', ')}` })
  return new Set(topics.filter((topic) => asked.includes(topic) && permissions.has(neededFor[topic])))
}
