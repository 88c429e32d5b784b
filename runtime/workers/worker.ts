/** The side of one worker: connections that its primary hands over, calls to it, and the end when it says so. */
import cluster from 'node:cluster'
import { Socket } from 'node:net'
import type { ConnectionSource } from '../net/index.ts'
import { type Handlers, isObject, type Line, openChannel, type WorkerChannel } from './channel.ts'

/** True in a process that another one has started as its worker. */
export const { isWorker } = cluster

/** What a worker serves with. */
export interface PrimaryLink {
  readonly channel: WorkerChannel
  /** For the listener. */
  readonly connections: ConnectionSource
}

export interface Served {
  close(options: { readonly graceMs: number }): Promise<void>
}

/**
 * Serves until the primary says otherwise, or is gone. Resolves when everything is closed; rejects, after the primary has
 * been told, when it cannot start.
 */
export async function serveAsWorker(
  start: (primary: PrimaryLink, offer: (handlers: Handlers) => void) => Promise<Served>,
): Promise<void> {
  const ended = Promise.withResolvers<void>()
  let served: Served | undefined

  async function close(argument: unknown): Promise<void> {
    const graceMs = isObject(argument) ? Number(argument['graceMs']) : 0
    await served?.close({ graceMs })
    ended.resolve()
  }
  const offered: Record<string, (argument: unknown) => unknown> = { 'workers.close': close }
  const line = processLine()
  const channel = openChannel(line, offered)
  line.onEnd(() => void close({ graceMs: 0 }))
  try {
    const connections = await connectionsOf(channel)
    served = await start({ channel, connections }, (handlers) => void Object.assign(offered, handlers))
    await channel.call('workers.serving')
  } catch (error) {
    await channel.call('workers.failed', toFields(error))
    throw error
  }
  await ended.promise
  if (process.connected) process.disconnect()
}

async function connectionsOf(channel: WorkerChannel): Promise<ConnectionSource> {
  const bound = await channel.call('workers.address')
  const { address, port } = isObject(bound) ? bound : {}
  let accept: ((socket: Socket) => void) | undefined
  process.on('message', (message: unknown, socket: unknown) => {
    if (!isObject(message) || typeof message['connection'] !== 'number') return
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
    address: String(address),
    port: Number(port),
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
