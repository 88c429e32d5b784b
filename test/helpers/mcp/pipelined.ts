/**
 * Sends many requests at once on one connection (HTTP/1.1 pipelining), so that a server receives all of them in one
 * turn of its event loop, on any machine.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { LoadLimits } from '../../../runtime/net/index.ts'

/** Limits that admit only a few requests at a time, so that `crowd` requests exceed them on any machine. */
export const crowdedLoad = {
  alwaysAdmitted: 0,
  turnMs: 0.01,
  burstMs: 5,
  standingMs: 5,
  rejectionsPerStart: 20,
} satisfies Partial<LoadLimits>
export const crowd = 300

export interface PipelinedResponse {
  readonly status: number
  /** The sent lines. */
  readonly head: string
  readonly text: string
}

export interface PipelinedRequest {
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** Sends a POST for each body. Resolves with the responses in the same order, which must have a `Content-Length`. */
export async function pipelined(
  url: string,
  requests: readonly PipelinedRequest[],
): Promise<PipelinedResponse[]> {
  const { hostname, port, host, pathname } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const texts = requests.map(({ headers = {}, body }) => {
    const all = {
      host,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-length': String(Buffer.byteLength(body)),
      ...headers,
    }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    return `POST ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
  })
  socket.setEncoding('latin1').write(texts.join(''))
  const responses: PipelinedResponse[] = []
  let received = ''
  for await (const chunk of socket) {
    received += String(chunk)
    for (let next = first(received); next; next = first(received)) {
      responses.push(next.response)
      received = received.slice(next.length)
    }
    if (responses.length === requests.length) break
  }
  return responses
}

function first(received: string): { response: PipelinedResponse; length: number } | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.slice(0, end)
  const length = end + 4 + Number(/^content-length: (\d+)$/im.exec(head)?.[1])
  if (Number.isNaN(length)) throw new Error(`no length: ${head}`)
  if (received.length < length) return undefined
  return {
    response: { status: Number(head.slice(9, 12)), head, text: received.slice(end + 4, length) },
    length,
  }
}
