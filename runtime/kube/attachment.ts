/**
 * Attaches to the standard streams of a running container over a WebSocket through the API server.
 *
 * The first byte of each binary message is the channel number. Standard input is never half-closed, because a
 * half-close cuts off the output on some runtimes. Output from before the attachment, or between attachments, is lost.
 * The caller must reconnect.
 * Source: Kubernetes, PodAttachOptions; the v4 and v5 remote command protocols.
 */
import { WebSocket } from 'ws'
import { ModuleError } from '../../schemas/index.ts'
import type { ClusterApi } from './cluster-api.ts'
import { refusalMessage, refusalReason } from './pod-state.ts'

export interface ContainerName {
  readonly namespace: string
  readonly pod: string
  readonly container: string
}

export interface AttachHandlers {
  readonly onStdout: (chunk: Buffer) => void
  readonly onStderr: (chunk: Buffer) => void
}

export interface Attachment {
  /** Writes to standard input, in order. Returns false when the peer is too slow. */
  write(data: Buffer): boolean
  /** Number of written bytes that have not been sent yet. */
  readonly unsent: number
  /** Pauses reading until `resume` is called. */
  pause(): void
  resume(): void
  /** Resolves once with the reason why the streams ended. */
  readonly ended: Promise<string>
  close(): void
}

/** Thrown when the attachment fails. The message is safe to show to users. */
export class AttachRefused extends ModuleError {
  /** Reason for a condition, in CamelCase. */
  readonly reason: string

  constructor(reason: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.reason = reason
  }
}

/** Protocol versions. The API server translates v5, and the node handles v4. Both versions use the same channels. */
const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const
const channel = { stdin: 0, stdout: 1, stderr: 2, status: 3 } as const
const handshakeMs = 15_000
const pingMs = 5_000
const deadMs = 30_000
/**
 * Size of a write. Runtimes copy in chunks of this size, so a smaller write is not mixed with other writers' output.
 */
const pieceBytes = 32 * 1024
const maxUnsent = 1024 * 1024
/** Maximum size of a message from the peer. Real chunks are much smaller. */
const maxPayload = 32 * 1024 * 1024
const maxRefusalBytes = 64 * 1024

/** Attaches to the container. Rejects with AttachRefused. */
export function attach(
  api: ClusterApi,
  target: ContainerName,
  handlers: AttachHandlers,
): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    let token: string
    try {
      token = api.token()
    } catch (cause) {
      reject(new AttachRefused('AccessRefused', 'the service account token cannot be read', { cause }))
      return
    }
    const socket = new WebSocket(urlOf(api, target), protocols, {
      headers: { authorization: `Bearer ${token}` },
      ca: api.ca,
      handshakeTimeout: handshakeMs,
      maxPayload,
      perMessageDeflate: false,
      followRedirects: false,
    })
    socket.binaryType = 'nodebuffer'
    // Registers the listener before the upgrade completes, because data may follow immediately.
    const stream = new Stream(socket, handlers)
    socket.once('open', () => resolve(stream))
    socket.once('unexpected-response', (_request, response) => {
      void readRefusal(response).then((body) => {
        const status = response.statusCode ?? 0
        const what = `pods/attach of ${target.pod}`
        reject(new AttachRefused(refusalReason(status), refusalMessage(status, 'create', what, body)))
        socket.terminate()
      })
    })
    socket.once('error', (cause) => {
      reject(new AttachRefused('ApiServerUnreachable', 'the API server cannot be reached', { cause }))
    })
  })
}

function urlOf({ baseUrl }: ClusterApi, { namespace, pod, container }: ContainerName): string {
  const query = new URLSearchParams({
    container,
    stdin: 'true',
    stdout: 'true',
    stderr: 'true',
    tty: 'false',
  })
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/attach`
  return `${baseUrl.replace(/^http/, 'ws')}${path}?${query.toString()}`
}

/** Returns the Status from a rejected upgrade response. */
async function readRefusal(response: AsyncIterable<Buffer>): Promise<Readonly<Record<string, unknown>>> {
  const parts: Buffer[] = []
  let size = 0
  try {
    for await (const part of response) {
      size += part.length
      if (size > maxRefusalBytes) break
      parts.push(part)
    }
    const value: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

class Stream implements Attachment {
  readonly ended: Promise<string>
  readonly #socket: WebSocket
  #heardAt = performance.now()
  #paused = false
  /** The peer's reason for closing the connection. */
  #status: string | undefined

  constructor(socket: WebSocket, { onStdout, onStderr }: AttachHandlers) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => {
      this.#heardAt = performance.now()
      const [to] = data
      if (to === channel.stdout && data.length > 1) onStdout(data.subarray(1))
      else if (to === channel.stderr && data.length > 1) onStderr(data.subarray(1))
      else if (to === channel.status && data.length > 1) this.#status = statusText(data.subarray(1))
    })
    const alive = (): void => {
      this.#heardAt = performance.now()
    }
    socket.on('pong', alive)
    socket.on('ping', alive)
    const timer = setInterval(() => this.#check(), pingMs)
    timer.unref()
    this.ended = new Promise((resolve) => {
      let failure: string | undefined
      socket.on('error', () => {
        failure = 'the connection to the API server was lost'
      })
      socket.once('close', () => {
        clearInterval(timer)
        resolve(this.#status ?? failure ?? 'the API server closed the stream')
      })
    })
  }

  /** Ends a connection that receives no data, not even a pong. Paused connections are exempt. */
  #check(): void {
    if (this.#paused) return
    if (performance.now() - this.#heardAt > deadMs) {
      this.#status ??= 'the connection to the API server stopped responding'
      this.#socket.terminate()
    } else if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping()
  }

  get unsent(): number {
    return this.#socket.bufferedAmount
  }

  write(data: Buffer): boolean {
    for (let at = 0; at < data.length; at += pieceBytes) {
      const piece = data.subarray(at, at + pieceBytes)
      // Ignores the error, because a failure ends the stream and `ended` contains the reason.
      this.#socket.send(Buffer.concat([stdinByte, piece]), () => undefined)
    }
    return this.#socket.bufferedAmount < maxUnsent
  }

  pause(): void {
    this.#paused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#paused = false
    this.#heardAt = performance.now()
    this.#socket.resume()
  }

  close(): void {
    this.#status ??= 'closed'
    this.#paused = false
    // Sends a close frame first, and terminates a connection that does not respond.
    this.#socket.close(1000)
    setTimeout(() => this.#socket.terminate(), 1_000).unref()
  }
}

const stdinByte = Buffer.from([channel.stdin])

/** Channel 3 contains a Status. The exit of the container's process is reported as Success. */
function statusText(bytes: Buffer): string | undefined {
  try {
    const { status, message }: { status?: unknown; message?: unknown } = JSON.parse(bytes.toString('utf8'))
    if (status === 'Success') return "the container's streams ended"
    return typeof message === 'string' ? message.slice(0, 1_024) : undefined
  } catch {
    return undefined
  }
}
