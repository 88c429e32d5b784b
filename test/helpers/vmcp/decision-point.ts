/** A policy decision point over HTTP or TLS, for tests: it keeps what it was asked, and answers as it is told. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface Question {
  readonly principal: Record<string, unknown>
  readonly operation: string
  readonly resource: string
  readonly context: Record<string, Record<string, unknown> | undefined>
}

export interface Asked {
  readonly question: Question
  readonly path: string
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

/** True or false: allow; a function does everything itself. */
export type Answer = boolean | ((res: ServerResponse, req: IncomingMessage) => void)

export interface TestDecisionPoint {
  readonly url: string
  readonly asked: Asked[]
  answer: (question: Question, headers: IncomingHttpHeaders) => Answer
  close(): Promise<void>
}

export interface TlsFiles {
  readonly key: Buffer
  readonly cert: Buffer
  /** Clients must show a certificate of this authority. */
  readonly ca: Buffer
}

export async function startDecisionPoint(
  answer: TestDecisionPoint['answer'] = () => true,
  tls?: TlsFiles,
): Promise<TestDecisionPoint> {
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => {
      const text = Buffer.concat(parts).toString()
      const question = JSON.parse(text) as Question
      point.asked.push({ question, text, path: req.url ?? '', headers: req.headers })
      const given = point.answer(question, req.headers)
      if (typeof given === 'function') given(res, req)
      else sendJson(res, { allow: given })
    })
  }
  const server = tls
    ? createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: true }, handle)
    : createServer(handle)
  const point: TestDecisionPoint = {
    url: '',
    asked: [],
    answer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(point, { url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}` })
}

export function sendJson(res: ServerResponse, value: unknown, status = 200): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
