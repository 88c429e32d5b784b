/**
 * Sends a number of calls over open connections as fast as responses arrive. The client is hand-written, because a load
 * generator that is slower than the measured server would leave the server idle between calls.
 *
 * Accepts JSON with a length and event streams in chunks, which a server may choose for a slow response. Fails on the
 * first response that is not a result.
 */
import { connect, type Socket } from 'node:net'
import { bodyOf, type Sent } from '../vmcp/client.ts'

/** Resolves once `count` calls have been answered. The connections use the requests in turn. */
export async function sendCalls(
  url: string,
  requests: readonly Sent[],
  count: number,
  connections = 16,
): Promise<void> {
  const { hostname, port, pathname } = new URL(url)
  let left = count
  const one = async (sent: Sent): Promise<void> => {
    const head = `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${Object.entries(sent.headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}`
    const socket = connect(Number(port), hostname).setNoDelay()
    try {
      await exchange(socket, () => {
        if (left <= 0) return undefined
        const body = bodyOf(sent, left--)
        return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
      })
    } finally {
      socket.destroy()
    }
  }
  const used = Array.from({ length: connections }, (_, i) => requests[i % requests.length] as Sent)
  await Promise.all(used.map(one))
}

/** Sends requests one after the other until there are no more. */
function exchange(socket: Socket, next: () => string | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const send = (): void => {
      const request = next()
      if (request === undefined) resolve()
      else socket.write(request)
    }
    socket.setEncoding('latin1')
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed the connection')))
    socket.on('data', (chunk: string) => {
      text += chunk
      if (!isComplete(text)) return
      const received = text
      text = ''
      const isResult = received.startsWith('HTTP/1.1 200') && received.includes('"result":')
      if (isResult && !received.includes('"isError":true')) send()
      else reject(new Error(`not a result: ${received.slice(0, 600)}`))
    })
  })
}

function isComplete(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1]
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length >= end + 4 + Number(length)
}
