/** The worker side: connections from the primary, calls to the primary, and shutdown. */
import { isFields } from '../../../schemas/index.ts'
import cluster from 'node:cluster'
import { Socket } from 'node:net'
import type { ConnectionSource } from '../../net/index.ts'
import { type Handlers, type Line, openChannel, type WorkerChannel } from './channel.ts'

/** True in a process that was started as a worker. */
export const { isWorker } = cluster

const peerMs = 5_000

/** A worker's link to its primary. */
export interface PrimaryLink {
  readonly channel: WorkerChannel
  /** Connections from the primary, for the listener. */
  readonly connections: ConnectionSource
  /** Unique id of this worker, never reused. */
  readonly id: string
  /** Secret shared by the workers of one primary. */
  readonly secret: string
  /** Resolves when this worker is selected for the work that only one process may perform. */
  readonly lead: Promise<void>
  /** Adds functions that the primary and other workers may call. */
  offer(handlers: Handlers): void
  /** Calls a function on all other workers. Returns the results of the calls that succeed. */
  others(name: string, argument?: unknown): Promise<readonly unknown[]>
  /** Calls a function on the other workers, one after the other, until one returns true. */
  any(name: string, argument?: unknown): Promise<boolean>
  /** Returns the address that another worker announced; undefined after the worker has exited. */
  peer(id: string): Promise<unknown>
}

export interface Served {
  /** Address that `PrimaryLink.peer` returns to other workers. */
  readonly peer?: unknown
  close(options: { readonly graceMs: number }): Promise<void>
}

/**
 * Serves until the primary stops this worker or exits. Resolves when everything is closed. Rejects when the worker
 * cannot start, after reporting the error to the primary.
 */
export async function serveAsWorker(start: (primary: PrimaryLink) => Promise<Served>): Promise<void> {
  const ended = Promise.withResolvers<void>()
  let served: Served | undefined
  /** A shutdown during startup waits until startup is complete. */
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
    // Ignores errors, because the primary may have exited.
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
    // Before reading, reports that this worker has accepted the connection. Until then, the connection can be passed to
    // another worker.
    process.send?.({ taken: message['connection'] }, undefined, undefined, () => {})
    // The connection was closed on its way to this worker.
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

/** Converts an error to plain fields, including system error fields. */
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
