/**
 * Keeps this proxy attached to the server's container for as long as the proxy runs. Waits for the container, attaches,
 * and reattaches when the streams break or the container restarts.
 *
 * A stream may stay open after its container has ended, so the pod is checked periodically. Each problem is reported
 * once, with the next step, in the log and in the record.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  type Attachment,
  type ContainerName,
  type ClusterApi,
  type ContainerRun,
  loadAttach,
  type PodState,
  readPodState,
} from '../../../kube/index.ts'
import type { Log } from '../../../net/index.ts'
import type { AttachmentEnd, Events } from '../../../observe/index.ts'
import { LineReader, logLineReader, maxLineBytes } from '../line-reader.ts'
import { messagesOf } from '../messages.ts'
import type { AttachRecord, AttachReport } from './record.ts'
import type { SharedServer } from './shared-server.ts'

export interface ConnectionOptions {
  readonly api: ClusterApi
  readonly target: ContainerName
  readonly record: AttachRecord
  readonly server: SharedServer
  readonly log: Log
  readonly events: Events
  /** Receives each line of the server's standard error. */
  readonly onLine: (line: string) => void
  /** Interval at which the pod and the record are checked while attached. */
  readonly lookMs: number
  /** How long to wait for a container that is not running. Default 1 s. */
  readonly retryMs?: number | undefined
}

/** The reason why an attachment ended. */
interface End {
  readonly cause: AttachmentEnd
  /** Text for the log and the record. */
  readonly why: string
}

const maxRefusedWaitMs = 10_000
const unreachable: AttachReport = {
  attached: false,
  reason: 'ApiServerUnreachable',
  message: 'the API server cannot be reached; allow egress from the proxy to it',
}
const elsewhere: AttachReport = {
  attached: false,
  reason: 'AnotherProxyAttached',
  message:
    'another proxy is attached to this server; this proxy takes over when the other proxy ends or stops reporting',
}
const silent: AttachReport = {
  attached: false,
  reason: 'ServerSilent',
  message:
    'the server is running but has not responded yet; check its log to see whether it serves MCP on its standard streams',
}

export class Connection {
  readonly #options: ConnectionOptions
  readonly #stop = new AbortController()
  readonly #failed = Promise.withResolvers<string>()
  readonly #lookMs: number
  readonly #retryMs: number
  #running: Promise<void> | undefined
  #report: AttachReport | undefined
  /** The run of the server that this proxy last attached to. */
  #known: string | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#lookMs = options.lookMs
    this.#retryMs = options.retryMs ?? 1_000
  }

  /** Resolves with the reason when the connection cannot continue. */
  get failed(): Promise<string> {
    return this.#failed.promise
  }

  /** Reason why requests cannot be served; undefined when they can. */
  get notReady(): string | undefined {
    return this.#report?.attached ? undefined : (this.#report?.message ?? 'the proxy is starting')
  }

  start(): void {
    this.#running ??= this.#run().catch((error: unknown) => {
      this.#options.log.error('the connection to the server failed', { err: error })
      this.#failed.resolve('the connection to the server failed')
    })
  }

  /** Releases the streams. */
  async close(): Promise<void> {
    this.#stop.abort()
    this.#failed.resolve('stopped')
    await this.#running
    await this.#options.record.release()
  }

  get #isOver(): boolean {
    return this.#stop.signal.aborted
  }

  async #run(): Promise<void> {
    const { record } = this.#options
    let refusals = 0
    while (!this.#isOver) {
      if (!(await record.isOurs())) {
        this.#tell(elsewhere)
        await this.#pause(this.#retryMs)
        continue
      }
      const { run, wrong } = await this.#look()
      if (wrong) {
        this.#tell({ attached: false, ...wrong })
        await this.#pause(this.#retryMs)
        continue
      }
      const attached = await this.#attach(run)
      refusals = attached ? 0 : refusals + 1
      if (!attached) await this.#pause(Math.min(this.#retryMs * refusals, maxRefusedWaitMs))
    }
  }

  async #look(): Promise<PodState> {
    const { api, target } = this.#options
    try {
      return await readPodState(api, target)
    } catch {
      return { wrong: unreachable }
    }
  }

  /** Runs one attachment from start to end. Returns false when attaching failed. */
  async #attach(run: ContainerRun): Promise<boolean> {
    const { api, target, server, log, events, onLine } = this.#options
    const { attach, AttachRefused } = await loadAttach()
    const over = Promise.withResolvers<End>()
    const stdout = new LineReader({
      // The container log contains the lines that are not messages.
      onLine: messagesOf(log, { onMessage: (message) => server.fromServer(message) }),
      onOverflow: () => events.emit('server_line_too_long', { limit_bytes: maxLineBytes }),
      onSkipped: (ends) => server.skipped(ends),
    })
    const stderr = logLineReader(onLine)
    let stream: Attachment | undefined
    let isPaused = false
    const onStdout = (chunk: Buffer): void => {
      stdout.push(chunk)
      const { busy } = stdout
      if (!busy || isPaused || !stream) return
      isPaused = true
      stream.pause()
      void busy.then(() => {
        isPaused = false
        stream?.resume()
      })
    }
    try {
      stream = await attach(api, target, { onStdout, onStderr: (chunk) => stderr.push(chunk) })
    } catch (error) {
      if (!(error instanceof AttachRefused)) throw error
      this.#tell({ attached: false, reason: error.reason, message: error.message })
      return false
    }
    void stream.ended.then((why) => over.resolve({ cause: 'stream_ended', why }))
    const introducing = this.#introduce(stream, run, over.resolve)
    const watching = this.#watch(run, over)
    const { cause, why } = await over.promise
    stream.close()
    stdout.close()
    server.notReady = why
    server.detached(why)
    this.#reportEnd(cause, why)
    await Promise.all([introducing, watching])
    return true
  }

  /** Reads the server's response to `initialize`, and then forwards requests. */
  async #introduce(stream: Attachment, run: ContainerRun, over: (end: End) => void): Promise<void> {
    const { server, record, events } = this.#options
    const id = runId(run)
    const late = setTimeout(() => this.#tell(silent), 10_000)
    try {
      const wire = {
        write: (line: Buffer) => void stream.write(line),
        get unsent() {
          return stream.unsent
        },
      }
      const known = record.introductionOf(id)
      const introduction = await server.attached(wire, known)
      record.introduced(id, introduction)
      if (introduction !== known)
        events.emit('server_initialized', { again: this.#known !== undefined, restarts: run.restarts })
      const message = "the proxy is attached to the server's standard streams"
      this.#tell({ attached: true, reason: 'Attached', message, restarts: run.restarts })
      this.#known = id
    } catch (error) {
      const isOther = error instanceof GatehouseError && error.code === 'BACKEND_SESSION_LOST'
      const why = error instanceof GatehouseError ? error.message : 'the server is unusable'
      // The server's sessions cannot continue, so this proxy must restart.
      if (isOther) this.#failed.resolve(why)
      else if (error instanceof GatehouseError && error.code === 'BACKEND_PROTOCOL')
        this.#tell({
          attached: false,
          reason: 'NoSession',
          message: `${why}; check its log, then delete its pod to restart it`,
        })
      if (isOther) over({ cause: 'server_changed', why })
      else if (!(error instanceof GatehouseError)) over({ cause: 'failed', why })
    } finally {
      clearTimeout(late)
    }
  }

  /**
   * Ends the attachment when the container was replaced, another proxy has acquired the record, or this proxy shuts
   * down.
   */
  async #watch(run: ContainerRun, over: PromiseWithResolvers<End>): Promise<void> {
    const look = async (): Promise<End | undefined> => {
      if (this.#isOver) return { cause: 'proxy_ended', why: 'the proxy is shutting down' }
      if (!(await this.#options.record.isOurs()))
        return { cause: 'another_proxy', why: 'another proxy has attached' }
      const { run: now, wrong } = await this.#look()
      if (now) return runId(now) === runId(run) ? undefined : restarted
      return gone.has(wrong.reason) ? { cause: 'server_gone', why: wrong.message } : undefined
    }
    for (;;) {
      const ended = await Promise.race([over.promise, this.#pause(this.#lookMs)])
      if (ended !== undefined) return
      const end = await look()
      if (end) over.resolve(end)
    }
  }

  #reportEnd(ended: AttachmentEnd, why: string): void {
    const isLast = ended === 'proxy_ended'
    const message = isLast ? why : `${why}; reattaching`
    this.#tell({ attached: false, reason: isLast ? 'ProxyEnded' : 'StreamEnded', message }, ended)
  }

  #tell(report: AttachReport, ended?: AttachmentEnd): void {
    const { events, record, server } = this.#options
    const before = this.#report
    this.#report = report
    if (!report.attached) server.notReady = report.message
    if (ended || before?.reason !== report.reason || before.message !== report.message) {
      const { reason, message, restarts } = report
      const again = report.attached && this.#known !== undefined
      events.emit('attach_state', {
        attached: report.attached,
        reason,
        why: message,
        ...(again && { again }),
        restarts,
        ended,
      })
    }
    void record.tell(report)
  }

  async #pause(ms: number): Promise<undefined> {
    // Aborted by `close`.
    await sleep(ms, undefined, { signal: this.#stop.signal, ref: false }).catch(() => undefined)
    return undefined
  }
}

const restarted: End = { cause: 'server_restarted', why: 'the container restarted' }
/** Reasons that indicate that the attached container is no longer running. */
const gone: ReadonlySet<string> = new Set([
  'PodNotFound',
  'PodTerminating',
  'ContainerEnded',
  'CrashLoopBackOff',
])

function runId({ podUid, containerId }: ContainerRun): string {
  return `${podUid}/${containerId}`
}
