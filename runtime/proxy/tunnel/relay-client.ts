/** A client for a self-hosted `gatehouse relay`: keeps idle connections open, and serves a tunnel through them. */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Dispatcher, makeDispatcher, type ProxyEnvironment } from '../../net/index.ts'
import type { Secret } from '../../observe/index.ts'
import { keepRunning, type Tunnel, type TunnelEvents, type TunnelProvider } from './provider.ts'
import { pingEveryMs, publicUrlHeader, subprotocol, tunnelPath } from './relay-protocol.ts'
import { acceptKey, WebSocketStream } from './websocket.ts'

export interface RelaySettings {
  /** The relay's URL; its scheme is ws, wss, http or https. */
  readonly url: string
  readonly hostname: string | undefined
  readonly authToken: () => Secret
  readonly ca: string | undefined
  readonly proxy: ProxyEnvironment | undefined
}

/** Number of idle connections to keep open at the relay. */
const idleConnections = 4

export function relayProvider(settings: RelaySettings): TunnelProvider {
  return {
    open(port: number, events: TunnelEvents): Tunnel {
      const stop = new AbortController()
      const origin = new URL(settings.url.replace(/^ws/, 'http')).origin
      const dispatcher = makeDispatcher({ origin, ca: settings.ca, proxy: settings.proxy })
      const session = randomBytes(16).toString('base64url')
      let shown = ''
      const onUp = (url: string): void => {
        if (url !== shown) events.onUp(url)
        shown = url
      }
      const slots = Array.from({ length: idleConnections }, () =>
        keepRunning(
          (signal) => hold({ dispatcher, origin, settings, session, port, signal, onUp }),
          stop.signal,
          events.onDown,
        ),
      )
      return {
        async close() {
          stop.abort(new Error('the tunnel is closing'))
          await Promise.all(slots)
          await dispatcher.destroy()
        },
      }
    },
  }
}

interface Slot {
  readonly dispatcher: Dispatcher
  readonly origin: string
  readonly settings: RelaySettings
  readonly session: string
  readonly port: number
  readonly signal: AbortSignal
  readonly onUp: (url: string) => void
}

/** Runs one connection. Resolves when the relay starts to use the connection, which frees the slot. */
async function hold(slot: Slot): Promise<void> {
  const { stream, publicUrl } = await dial(slot)
  if (slot.signal.aborted) {
    stream.destroy()
    return
  }
  slot.onUp(publicUrl)
  await new Promise<void>((resolve, reject) => {
    const silence = setTimeout(() => stream.destroy(new Error('the relay does not respond')), pingEveryMs * 3)
    const stop = (): void => {
      stream.destroy()
      resolve()
    }
    slot.signal.addEventListener('abort', stop, { once: true })
    stream.on('alive', () => silence.refresh())
    const onReadable = (): void => {
      if (stream.readableLength === 0) return
      stream.off('readable', onReadable)
      clearTimeout(silence)
      slot.signal.removeEventListener('abort', stop)
      join(stream, slot)
      resolve()
    }
    stream.on('readable', onReadable)
    stream.once('close', () => {
      clearTimeout(silence)
      slot.signal.removeEventListener('abort', stop)
      reject(new Error('the relay closed an idle connection'))
    })
    stream.on('error', reject)
  })
}

/** Connects the two sockets. */
function join(stream: Duplex, { port, signal }: Slot): void {
  const local = connect(port, '127.0.0.1')
  const stop = (): void => {
    stream.destroy()
    local.destroy()
  }
  signal.addEventListener('abort', stop, { once: true })
  local.on('error', stop)
  stream.on('error', stop)
  stream.on('close', () => {
    signal.removeEventListener('abort', stop)
    // Deliver the remaining bytes from the relay; no further responses are expected.
    local.destroySoon()
  })
  local.on('close', () => {
    // The pipe ends the stream after the last bytes.
    if (!local.readableEnded) stream.destroy()
  })
  stream.pipe(local)
  local.pipe(stream)
}

interface Dialed {
  readonly stream: WebSocketStream
  readonly publicUrl: string
}

const refusals: Readonly<Record<number, string>> = {
  401: 'the relay rejected the token',
  404: 'no relay at this URL',
  409: 'the hostname is already in use at the relay',
  503: 'the relay has reached its tunnel limit',
}

function dial(slot: Slot): Promise<Dialed> {
  const { dispatcher, origin, settings, session } = slot
  const key = randomBytes(16).toString('base64')
  const query = new URLSearchParams({ session })
  if (settings.hostname !== undefined) query.set('hostname', settings.hostname)
  return new Promise((resolve, reject) => {
    dispatcher.dispatch(
      {
        origin,
        method: 'GET',
        path: `${tunnelPath}?${query.toString()}`,
        upgrade: 'websocket',
        headers: {
          host: new URL(origin).host,
          authorization: `Bearer ${settings.authToken().reveal()}`,
          'sec-websocket-key': key,
          'sec-websocket-version': '13',
          'sec-websocket-protocol': subprotocol,
        },
      },
      {
        onRequestStart() {},
        onRequestUpgrade(_controller, _status, headers, socket) {
          const publicUrl = headers[publicUrlHeader]
          if (headers['sec-websocket-accept'] === acceptKey(key) && typeof publicUrl === 'string') {
            resolve({ stream: new WebSocketStream(socket, 'client'), publicUrl })
            return
          }
          socket.destroy()
          reject(
            new GatehouseError('BACKEND_PROTOCOL', {
              detail: 'the relay does not support the tunnel protocol',
            }),
          )
        },
        onResponseStart(controller, status) {
          const detail = refusals[status] ?? `the relay answered with HTTP ${status}`
          controller.abort(new GatehouseError('BACKEND_UNAVAILABLE', { detail }))
        },
        onResponseError: (_controller, error) => reject(error),
      },
    )
  })
}
