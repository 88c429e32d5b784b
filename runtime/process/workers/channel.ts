/**
 * Remote calls between the primary process and a worker over Node's IPC channel. Each side offers named functions and
 * awaits results from the other side. The channel preserves Gatehouse errors. All other errors become INTERNAL.
 */
import { type ErrorCode, errors, GatehouseError, isFields } from '../../../schemas/index.ts'

/** Functions that one side offers, keyed by name. */
export type Handlers = Readonly<Record<string, (argument: unknown) => unknown>>

/** The transport for messages: a worker or the process. */
export interface Line {
  send(message: object): void
  onMessage(listener: (message: unknown) => void): void
  onEnd(listener: () => void): void
}

export interface WorkerChannel {
  /**
   * Calls a function on the other side and returns the function's result. Rejects with the other side's GatehouseError,
   * with SHUTTING_DOWN if the channel closes first, or with BACKEND_TIMEOUT if the call takes longer than `withinMs`.
   * Without `withinMs`, the call waits indefinitely.
   */
  call(name: string, argument?: unknown, options?: { readonly withinMs?: number }): Promise<unknown>
}

export function openChannel(line: Line, handlers: Handlers): WorkerChannel {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  let next = 0
  let ended = false

  async function serve(id: number, name: string, argument: unknown): Promise<void> {
    try {
      const handler = handlers[name]
      if (!handler) throw new Error(`unknown request ${name}`)
      const value = await handler(argument)
      line.send({ reply: id, value })
    } catch (error) {
      const { code, message, headers } =
        error instanceof GatehouseError ? error : new GatehouseError('INTERNAL')
      line.send({ reply: id, error: { code, message, headers } })
    }
  }

  line.onMessage((message) => {
    if (!isFields(message)) return
    const { call, reply } = message
    if (typeof call === 'number') void serve(call, String(message['name']), message['argument'])
    if (typeof reply !== 'number') return
    const entry = waiting.get(reply)
    waiting.delete(reply)
    if (isFields(message['error'])) entry?.reject(revive(message['error']))
    else entry?.resolve(message['value'])
  })
  line.onEnd(() => {
    ended = true
    for (const { reject } of waiting.values()) reject(new GatehouseError('SHUTTING_DOWN'))
    waiting.clear()
  })

  return {
    call(name, argument, { withinMs } = {}) {
      if (ended) return Promise.reject(new GatehouseError('SHUTTING_DOWN'))
      const id = next++
      const result = new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        line.send({ call: id, name, argument })
      })
      return withinMs === undefined ? result : inTime(result, withinMs, () => waiting.delete(id))
    },
  }
}

async function inTime(result: Promise<unknown>, withinMs: number, forget: () => void): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      forget()
      reject(new GatehouseError('BACKEND_TIMEOUT', { detail: 'the other process did not respond' }))
    }, withinMs)
  })
  try {
    return await Promise.race([result, late])
  } finally {
    clearTimeout(timer)
  }
}

function revive(error: Readonly<Record<string, unknown>>): GatehouseError {
  const code = String(error['code'])
  const headers = isFields(error['headers']) ? Object.entries(error['headers']) : []
  return new GatehouseError(isCode(code) ? code : 'INTERNAL', {
    detail: String(error['message']),
    headers: Object.fromEntries(headers.map(([name, value]) => [name, String(value)])),
  })
}

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(errors, code)
}
