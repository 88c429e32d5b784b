/** The side of one worker: connections that its primary hands over, calls to it, and the end when it says so. */
import { isFields } from '../../../schemas/index.ts'
import cluster from 'node:cluster'
import { Socket } from 'node:net'
import type { ConnectionSource } from '../../net/index.ts'
import { type Handlers, type Line, openChannel, type WorkerChannel } from './channel.ts'

/** True in a process that another one has started as its worker. */
export const { isWorker } = cluster

const peerMs = 5_000

/** What a worker serves with. */
export interface PrimaryLink {
  readonly channel: WorkerChannel
  /** For the listener. */
  readonly connections: ConnectionSource
  /** Of this worker; no other one has ever had it. */
  readonly id: string
  /** Shared by the workers of one primary, and nobody else. */
  readonly secret: string
  /** Resolves when this worker is to do what one process must do alone. */
  readonly lead: Promise<void>
  /** Adds what primary and other workers may call. */
  offer(handlers: Handlers): void
  /** Calls a function of all other workers. Gives the results of all that do not fail. */
  others(name: string, argument?: unknown): Promise<readonly unknown[]>
  /** Calls a function of the other workers, one after the other, until one says true. */
  any(name: string, argument?: unknown): Promise<boolean>
  /** What another worker has said about where it is reached; undefined when it is gone. */
  peer(id: string): Promise<unknown>
}

export interface Served {
  /** Where other workers reach this one, for `PrimaryLink.peer`. */
  readonly peer?: unknown
  close(options: { readonly graceMs: number }): Promise<void>
}

/**
 * Serves until the primary says otherwise, or is gone. Resolves when everything is closed; rejects, after the primary has
 * been told, when it cannot start.
 */
export async function serveAsWorker(start: (primary: PrimaryLink) => Promise<Served>): Promise<void> {
  const ended = Promise.withResolvers<void>()
  let served: Served | undefined
  /** The end came; until the start is done, it waits for it. */
  let end: { readonly graceMs: number } | undefined

  async function close(argument: unknown): Promise<void> {
    if (end) return
    end = { graceMs: isFields(argument) ? Number(argument['graceMs']) : 0 }
    await served?.close(end)
    ended.resolve()
  }
  const lead = Promise.withResolvers<void>()
  const offered: Record<string, (argument: unknown) => unknown> = {
    'workers.close': close,
    'workers.lead': () => lead.resolve(),
    'workers.there': () => true,
  }
  const line = processLine()
  const channel = openChannel(line, offered)
  line.onEnd(() => void close({ graceMs: 0 }))
  try {
    const hello = await channel.call('workers.hello')
    const { address, port, id, secret } = isFields(hello) ? hello : {}
    served = await start({
      channel,
      connections: handedOver(String(address), Number(port)),
      id: String(id),
      secret: String(secret),
      lead: lead.promise,
      offer: (handlers) => void Object.assign(offered, handlers),
      async others(name, argument) {
        const results = await channel.call('workers.others', { name, argument })
        return Array.isArray(results) ? results : []
      },
      any: async (name, argument) => (await channel.call('workers.any', { name, argument })) === true,
      peer: (of) => channel.call('workers.peer', of, { withinMs: peerMs }),
    })
    if (end) await served.close(end)
    else await channel.call('workers.serving', served.peer)
  } catch (error) {
    await served?.close({ graceMs: 0 }).catch(() => {})
    // The primary may be gone; then nobody asks why.
    await channel.call('workers.failed', toFields(error)).catch(() => {})
    throw error
  }
  await ended.promise
  if (process.connected) process.disconnect()
}

function handedOver(address: string, port: number): ConnectionSource {
  let accept: ((socket: Socket) => void) | undefined
  process.on('message', (message: unknown, socket: unknown) => {
    if (!isFields(message) || typeof message['connection'] !== 'number') return
    // Before anything of it is read: until then it can go to another worker.
    process.send?.({ taken: message['connection'] }, undefined, undefined, () => {})
    // One that was closed on its way is gone.
    if (!(socket instanceof Socket)) return
    if (!accept) {
      socket.destroy()
      return
    }
    socket.allowHalfOpen = true
    accept(socket)
  })
  return {
    address,
    port,
    take(taker) {
      accept = taker
      return () => {
        accept = undefined
      }
    },
  }
}

/** An error as plain fields, those of the system among them. */
function toFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code, syscall, address, port }: NodeJS.ErrnoException & { address?: string; port?: number } = error
  return { message: error.message, code, syscall, address, port }
}

function processLine(): Line {
  return {
    send(message) {
      if (process.connected) process.send?.(message, undefined, undefined, () => {})
    },
    onMessage: (listener) => void process.on('message', listener),
    onEnd: (listener) => void process.once('disconnect', listener),
  }
}
