/** Types for the parts of the ws package that Gatehouse uses. The package ships no types. */
declare module 'ws' {
  import type { IncomingMessage } from 'node:http'
  import type { EventEmitter } from 'node:events'
  import type { Duplex } from 'node:stream'

  export interface WebSocketOptions {
    readonly headers?: Readonly<Record<string, string>>
    readonly ca?: string | undefined
    readonly handshakeTimeout?: number
    readonly maxPayload?: number
    readonly perMessageDeflate?: boolean
    readonly followRedirects?: boolean
  }

  export class WebSocket extends EventEmitter {
    static readonly OPEN: number
    constructor(url: string | URL, protocols: readonly string[], options?: WebSocketOptions)
    readonly readyState: number
    readonly protocol: string
    /** Number of bytes passed to `send` that the operating system has not accepted yet. */
    readonly bufferedAmount: number
    binaryType: 'nodebuffer' | 'arraybuffer' | 'fragments'
    send(data: Buffer, sent?: (error?: Error) => void): void
    ping(): void
    pause(): void
    resume(): void
    close(code?: number, reason?: string): void
    terminate(): void
  }

  export class WebSocketServer extends EventEmitter {
    constructor(options: {
      readonly noServer: true
      readonly handleProtocols?: (protocols: Set<string>, request: IncomingMessage) => string | false
      readonly maxPayload?: number
    })
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      done: (socket: WebSocket) => void,
    ): void
    close(): void
  }
}
