/**
 * Implements the kubelet's side of `attach`: the standard streams of a process over a WebSocket, in channels, for any
 * number of attachers. Each attacher gets all output from its attach on, without replay. Source: Kubernetes, the v4 and
 * v5 remote command protocols; containerd's handling of standard input.
 */
import type { ChildProcess } from 'node:child_process'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'

export class ContainerStreams {
  readonly #child: ChildProcess
  readonly #sockets = new Set<WebSocket>()

  constructor(child: ChildProcess) {
    this.#child = child
    child.stdin?.on('error', () => undefined)
    child.stdout?.on('data', (chunk: Buffer) => this.#tell(1, chunk))
    child.stderr?.on('data', (chunk: Buffer) => this.#tell(2, chunk))
    child.once('close', () => this.end())
  }

  get attachers(): number {
    return this.#sockets.size
  }

  #tell(channel: number, chunk: Buffer): void {
    for (const socket of this.#sockets) socket.send(Buffer.concat([Buffer.from([channel]), chunk]))
  }

  add(socket: WebSocket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    // Established.
    for (const channel of [1, 2, 3]) socket.send(Buffer.from([channel]))
    socket.on('message', (data: Buffer) => {
      const { stdin } = this.#child
      if (data[0] !== 0 || !stdin || stdin.destroyed || stdin.write(data.subarray(1))) return
      socket.pause()
      stdin.once('drain', () => socket.resume())
    })
  }

  /** Ends the streams, as when the process has ended. */
  end(): void {
    const status = { metadata: {}, status: 'Success' }
    for (const socket of this.#sockets) {
      socket.send(Buffer.concat([Buffer.from([3]), Buffer.from(JSON.stringify(status))]))
      socket.close(1000)
    }
  }

  /** Cuts the connections, as when a machine in between fails. */
  cut(): void {
    for (const socket of this.#sockets) socket.terminate()
  }

  /** Drops its attachers silently: their streams stay open. */
  forget(): void {
    this.#sockets.clear()
  }
}

const offered = ['v5.channel.k8s.io', 'v4.channel.k8s.io']

export class AttachServer {
  readonly #server = new WebSocketServer({
    noServer: true,
    handleProtocols: (asked) => offered.find((protocol) => asked.has(protocol)) ?? false,
  })

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, streams: ContainerStreams): void {
    this.#server.handleUpgrade(request, socket, head, (accepted) => streams.add(accepted))
  }

  /** Responds instead of upgrading, like the API server. */
  refuse(socket: Duplex, code: number, message: string): void {
    const body = JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code })
    const head = `HTTP/1.1 ${code} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`
    socket.end(head + body)
  }
}
