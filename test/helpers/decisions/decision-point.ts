/** A policy decision point over HTTP or TLS. It records the requests and returns configured responses. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { sendJson, startJsonServer } from '../vmcp/json-server.ts'

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

/** A boolean allows or denies; a function handles the whole request. */
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
  /** Clients must present a certificate from this authority. */
  readonly ca: Buffer
}

export async function startDecisionPoint(
  answer: TestDecisionPoint['answer'] = () => true,
  tls?: TlsFiles,
): Promise<TestDecisionPoint> {
  const { origin, close } = await startJsonServer(
    (text, req, res) => {
      const question = JSON.parse(text) as Question
      point.asked.push({ question, text, path: req.url ?? '', headers: req.headers })
      const given = point.answer(question, req.headers)
      if (typeof given === 'function') given(res, req)
      else sendJson(res, { allow: given })
    },
    tls && { ...tls, requestCert: true, rejectUnauthorized: true },
  )
  const point: TestDecisionPoint = { url: origin, asked: [], answer, close }
  return point
}
