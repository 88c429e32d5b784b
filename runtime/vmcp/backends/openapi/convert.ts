/**
 * Converts OpenAPI documents in a worker thread. A hostile document can take several seconds and much memory, so each
 * conversion has a time limit and a heap limit, and only one conversion runs at a time.
 */
import { ModuleError } from '../../../../schemas/index.ts'
import type { OpenApiSettings } from '../../../../schemas/openapi/index.ts'
import { ownMemory } from '../../../net/index.ts'
import { type PoolOptions, WorkerPool, type WorkerProgram } from '../../../process/index.ts'

export const openApiWorker: WorkerProgram = {
  name: 'openapi-worker',
  source: new URL('./worker.ts', import.meta.url),
}

const maxHeapMb = 1_024
const minHeapMb = 64

/**
 * Returns the heap limit of a conversion. A conversion that exceeds the memory limit of the container would end the
 * whole server, so it may use only a part of this memory.
 */
export function conversionHeapMb(memory: number): number {
  return Math.max(minHeapMb, Math.min(maxHeapMb, Math.floor((memory * 0.4) / 1024 / 1024)))
}

const poolOptions: PoolOptions = {
  tasks: 'OpenAPI conversions',
  maxWorkers: 1,
  maxPerCaller: 1,
  maxWaiting: 1_000,
  maxParked: 0,
  maxParkedPerCaller: 0,
  maxParkedBytes: 0,
  maxIdle: 1,
  idleMs: 5_000,
  heapMb: conversionHeapMb(ownMemory()),
}

const conversionMs = 30_000

export interface ConvertedTool {
  readonly name: string
  /** The tool as clients see it, as JSON. */
  readonly definition: string
  /** The tool's RequestPlan, as JSON. */
  readonly plan: string
}

export interface ConvertedTools {
  readonly tools: readonly ConvertedTool[]
  /** Number of selected operations that are not offered. */
  readonly skipped: number
  /** The first skipped operations, one line each. */
  readonly skippedLines: readonly string[]
  /** The first filters and overrides that match no operation, one line each. */
  readonly unused: readonly string[]
}

export interface ConversionTask {
  readonly text: string
  readonly settings: OpenApiSettings
}

export type ConversionReply =
  | { readonly kind: 'converted'; readonly value: ConvertedTools }
  | { readonly kind: 'rejected'; readonly reason: string }

/** The document cannot be used. The message contains the reason. */
export class DocumentRejected extends ModuleError {}

export class Converter {
  readonly #pool: WorkerPool
  readonly #timeoutMs: number

  constructor(options: Partial<PoolOptions> = {}, timeoutMs = conversionMs) {
    this.#pool = new WorkerPool(openApiWorker, { ...poolOptions, ...options })
    this.#timeoutMs = timeoutMs
  }

  /** Rejects with DocumentRejected, or with the signal's reason. */
  async convert(backend: string, task: ConversionTask, signal: AbortSignal): Promise<ConvertedTools> {
    const lease = await this.#pool.take(backend, signal)
    const { worker } = lease
    const ended = Promise.withResolvers<ConversionReply>()
    const reject = (reason: string, cause?: Error): void =>
      ended.reject(new DocumentRejected(reason, { cause }))
    let usable = false
    const onMessage = (reply: ConversionReply): void => {
      usable = true
      ended.resolve(reply)
    }
    const onError = (error: Error): void =>
      reject(
        'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
          ? 'the conversion exceeded the memory limit; convert the document to JSON, which needs less memory, or raise the memory limit of the server'
          : `the conversion failed: ${error.name}`,
        error,
      )
    const onExit = (): void => reject('the conversion was terminated')
    const onAbort = (): void =>
      ended.reject(signal.reason instanceof Error ? signal.reason : new Error('cancelled'))
    const timer = setTimeout(
      () => reject(`the conversion took longer than ${this.#timeoutMs / 1_000} s`),
      this.#timeoutMs,
    )
    worker.once('message', onMessage).once('error', onError).once('exit', onExit)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      if (signal.aborted) onAbort()
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
      else worker.postMessage(task)
      const reply = await ended.promise
      if (reply.kind === 'rejected') throw new DocumentRejected(reply.reason)
      return reply.value
    } finally {
      clearTimeout(timer)
      worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      signal.removeEventListener('abort', onAbort)
      lease.end({ usable })
    }
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }
}
