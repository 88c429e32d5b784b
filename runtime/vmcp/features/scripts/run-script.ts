/**
 * Runs a script on the server side. Submits the script to a worker, executes its tool calls, and collects its log
 * lines. Ends the script if it exceeds its limits or the caller disconnects.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { formatDuration } from '../../../../schemas/index.ts'
import type { Log, Deadline } from '../../../net/index.ts'
import type { Lease } from '../../../process/index.ts'
import {
  type ToolBinding,
  type FromWorker,
  maxLogCharacters,
  type ToolResponse,
  type ToScriptWorker,
} from './messages.ts'
import type { ScriptSettings } from './settings.ts'
import type { ToolCalls } from './tool-calls.ts'

export interface SubmittedScript {
  readonly text: string
  /** The script's data as a raw JSON object. */
  readonly data: Buffer | undefined
  readonly binding: ToolBinding
}

export interface ScriptEnd {
  readonly result:
    | { readonly kind: 'done'; readonly text: Buffer; readonly structured: Buffer | undefined }
    | { readonly kind: 'failed'; readonly message: string }
  /** Printed lines, in the order in which a sequential run would print them. */
  readonly logs: readonly string[]
}

export interface ScriptRunOptions {
  readonly settings: ScriptSettings
  readonly deadline: Deadline
  readonly calls: ToolCalls
  readonly log: Log
}

/** Runs a script. Resolves when the script has ended, regardless of the reason. Ends the lease. */
export async function runScript(
  script: SubmittedScript,
  lease: Lease,
  options: ScriptRunOptions,
): Promise<ScriptEnd> {
  const { worker } = lease
  const { settings, deadline, calls } = options
  const lines: Line[] = []
  // Messages arrive in the async context that created the worker. Run the handlers in this request's context.
  const inContext = AsyncLocalStorage.snapshot()
  const ended = Promise.withResolvers<ScriptEnd['result']>()
  let usable = false
  let printed = 0
  let open = 0
  let received = 0

  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
  const send = (message: ToScriptWorker): void => worker.postMessage(message)

  // Responses that are waiting in the worker are not counted in the worker's heap or meter.
  const bounded = (response: ToolResponse): ToolResponse => {
    if (!('bytes' in response)) return response
    received += response.bytes.length
    return received <= settings.maxBytes ? response : tooLarge
  }

  const onMessage = (message: FromWorker): void => {
    switch (message.kind) {
      case 'call':
        open++
        void inContext(() => calls.call(message)).then((response) => {
          open--
          send({ kind: 'response', id: message.id, response: bounded(response) })
        })
        break
      case 'print':
        printed += message.line.length + 1
        if (printed <= maxLogCharacters + 1) lines.push(message)
        break
      default:
        usable = open === 0
        ended.resolve(
          message.kind === 'failed'
            ? message
            : {
                kind: 'done',
                text: bufferOf(message.text),
                structured: message.structured && bufferOf(message.structured),
              },
        )
    }
  }
  const onError = (error: Error): void =>
    ended.resolve({ kind: 'failed', message: errorOf(error, options.log) })
  const onExit = (): void => ended.resolve({ kind: 'failed', message: 'the script was terminated' })
  const onAbort = (): void =>
    ended.resolve({
      kind: 'failed',
      message: `the script took longer than ${formatDuration(settings.scriptTimeoutMs)}`,
    })
  worker.on('message', onMessage)
  worker.on('error', onError)
  worker.on('exit', onExit)
  deadline.signal.addEventListener('abort', onAbort, { once: true })
  if (deadline.signal.aborted) onAbort()
  else send(requestOf(script, settings))
  try {
    return { result: await ended.promise, logs: inOrder(lines) }
  } finally {
    worker.off('message', onMessage)
    worker.off('error', onError)
    worker.off('exit', onExit)
    deadline.signal.removeEventListener('abort', onAbort)
    lease.end({ usable })
  }
}

const tooLarge: ToolResponse = {
  kind: 'error',
  message: "the call results exceed the script's memory limit",
}

function requestOf({ text, data, binding }: SubmittedScript, settings: ScriptSettings): ToScriptWorker {
  return {
    kind: 'run',
    script: text,
    data: data && Uint8Array.from(data),
    binding,
    limits: {
      maxSteps: settings.stepLimit,
      maxBytes: settings.maxBytes,
      maxCalls: settings.parallelMaxConcurrency,
    },
  }
}

function errorOf(error: Error, log: Log): string {
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') return 'the script ran out of memory'
  log.error('a script worker failed', { err: error })
  return 'internal error'
}

interface Line {
  readonly line: string
  readonly path: readonly number[]
}

function inOrder(lines: Line[]): string[] {
  return lines.toSorted((a, b) => comparePaths(a.path, b.path)).map(({ line }) => line)
}

function comparePaths(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((step, i) => step !== b[i])
  return at < 0 ? a.length - b.length : (a[at] ?? 0) - (b[at] ?? -1)
}

/**
 * Returns a Buffer for bytes from another thread, which arrive as a Uint8Array. The Buffer shares the bytes' memory.
 */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
