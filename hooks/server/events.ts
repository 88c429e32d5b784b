/**
 * Writes the Kubernetes Events that result from a sync. A hook cannot return an Event, so the server writes the Event
 * through the API after the response. Writes are best effort and deduplicated.
 *
 * The name is derived from the parent, reason, message and generation. A repeated write fails with "already exists",
 * which counts as success. The API server deletes an Event after an hour. After that hour, the server writes the Event
 * again if the condition persists or recurs with the same text.
 * Source: docs/reference/specification/virtual-server.md#events, "Events".
 */
import { createHash } from 'node:crypto'
import { GatehouseError } from '../../schemas/index.ts'
import type { KubeObject } from '../base/kube.ts'
import type { HookEvent } from '../sync/protocol.ts'
import type { HookLog } from './log.ts'

export interface EventSink {
  /** Queues the event and returns immediately. */
  readonly emit: (event: HookEvent) => void
}

/** Writes one Event object. Also resolves when the Event already exists. */
export type EventWriter = (event: KubeObject) => Promise<void>

/** Maximum number of remembered event names. After a restart, each known event causes one rejected create request. */
const maxRemembered = 10_000
/**
 * Slightly longer than `--event-ttl` (one hour), because an earlier attempt would find the old Event just before it
 * expires.
 */
const rememberedMs = 65 * 60_000

/**
 * Limits on concurrent writes and waiting events. Thousands of objects can need an Event at once, and an API server can
 * be slow.
 */
const maxWriting = 16
const maxWaiting = 1_000

export function eventSink(write: EventWriter, log: HookLog, now: () => Date): EventSink {
  const sink = new Events(write, log, now)
  return { emit: (event) => sink.emit(event) }
}

class Events {
  readonly #write: EventWriter
  readonly #log: HookLog
  readonly #now: () => Date
  /** Time of the last write, by event key. */
  readonly #written = new Map<string, number>()
  #waiting: KubeObject[] = []
  #writing = 0
  #dropped = 0

  constructor(write: EventWriter, log: HookLog, now: () => Date) {
    this.#write = write
    this.#log = log
    this.#now = now
  }

  emit(event: HookEvent): void {
    const object = eventObject(event, this.#now)
    const key = keyOf(object)
    const at = this.#now().getTime()
    if (at - (this.#written.get(key) ?? -Infinity) < rememberedMs) return
    if (this.#waiting.length >= maxWaiting) {
      // The next sync of the parent emits the event again.
      this.#dropped += 1
      return
    }
    if (this.#written.size >= maxRemembered) this.#written.clear()
    this.#written.set(key, at)
    this.#waiting.push(object)
    this.#next()
  }

  #next(): void {
    while (this.#writing < maxWriting) {
      const object = this.#waiting.shift()
      if (!object) return
      void this.#writeOne(object)
    }
  }

  async #writeOne(object: KubeObject): Promise<void> {
    const key = keyOf(object)
    this.#writing += 1
    try {
      await this.#write(object)
    } catch (error) {
      this.#written.delete(key)
      this.#log('warn', 'writing an event failed', { object: key, err: reasonOf(error) })
    }
    this.#writing -= 1
    if (this.#waiting.length === 0 && this.#dropped > 0) {
      this.#log('warn', 'too many events at once; some were delayed', { count: this.#dropped })
      this.#dropped = 0
    }
    this.#next()
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`
}

/** Returns the message only for our own errors, because other messages might repeat request data. */
function reasonOf(error: unknown): string {
  if (error instanceof GatehouseError) return error.message
  return error instanceof Error ? error.name : 'unknown'
}

/** Builds a core/v1 Event about the parent. */
export function eventObject({ parent, type, reason, message }: HookEvent, now: () => Date): KubeObject {
  const { name, namespace = 'default', uid = '', generation = 0, resourceVersion } = parent.metadata
  // 64 bits are enough for unique names among the events of one object within an hour.
  const identity = `${uid}\0${reason}\0${generation}\0${message}`
  const digest = createHash('sha256').update(identity).digest('hex').slice(0, 16)
  const time = `${now().toISOString().slice(0, 19)}Z`
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name.slice(0, 230).replace(/[.-]+$/, '')}.${digest}`, namespace },
    involvedObject: {
      apiVersion: parent.apiVersion,
      kind: parent.kind,
      name,
      namespace,
      uid,
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    type,
    reason,
    message: message.slice(0, 1024),
    source: { component: 'gatehouse-hooks' },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  }
}

/**
 * Returns a writer for the API server of the pod's cluster or for the API server that a kubeconfig specifies. Throws if
 * neither is configured.
 */
export async function clusterEventWriter(kubeconfig?: string): Promise<EventWriter> {
  const { KubeConfig, apiPath, apiServer } = await import('../base/api-server.ts')
  const config = new KubeConfig()
  if (kubeconfig === undefined) config.loadFromCluster()
  else config.loadFromFile(kubeconfig)
  const api = apiServer(config)
  return async (event) => {
    const { namespace = 'default' } = event.metadata
    const path = apiPath({ group: '', version: 'v1', plural: 'events', namespace })
    const { status } = await api({ method: 'POST', path, body: event })
    // Status 409: the event already exists.
    if (status >= 300 && status !== 409)
      throw new GatehouseError('INTERNAL', { detail: `the API server answered ${status}` })
  }
}
