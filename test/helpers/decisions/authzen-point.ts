/**
 * A decision point with the OpenID AuthZEN Authorization API 1.0. It records the requests and returns configured
 * responses.
 */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { sendJson, startJsonServer } from '../vmcp/json-server.ts'
import type { TlsFiles } from './decision-point.ts'

export interface Evaluation {
  readonly subject: {
    readonly type: string
    readonly id: string
    readonly properties: Record<string, unknown>
  }
  readonly action: { readonly name: string }
  readonly resource: {
    readonly type: string
    readonly id: string
    readonly properties: Record<string, unknown>
  }
  readonly context?: Record<string, unknown>
}

interface EvaluationRequest extends Evaluation {
  readonly evaluations?: readonly Partial<Evaluation>[]
}

export interface AuthzenRequest {
  readonly path: string
  readonly body: EvaluationRequest
  readonly text: string
  readonly headers: IncomingHttpHeaders
  /** Evaluations with the shared members filled in. */
  readonly evaluations: readonly Evaluation[]
}

export interface TestAuthzenPoint {
  readonly url: string
  readonly asked: AuthzenRequest[]
  /** A value that is not a boolean is sent unchanged instead of one evaluation. */
  decide: (evaluation: Evaluation, headers: IncomingHttpHeaders) => unknown
  /** Handles the whole request. */
  answer: ((res: ServerResponse, request: AuthzenRequest) => void) | undefined
  /** Without support for batches, it responds with 404. */
  batches: boolean
  close(): Promise<void>
}

export async function startAuthzenPoint(
  decide: TestAuthzenPoint['decide'] = () => true,
  tls?: TlsFiles,
): Promise<TestAuthzenPoint> {
  const { origin, close } = await startJsonServer(
    (text, req, res) => {
      const body = JSON.parse(text) as EvaluationRequest
      const { evaluations, ...shared } = body
      const path = req.url ?? ''
      const asked = (evaluations ?? [{}]).map((one) => ({ ...shared, ...one }))
      const request = { path, body, text, headers: req.headers, evaluations: asked }
      point.asked.push(request)
      if (point.answer) return point.answer(res, request)
      const answers = asked.map((one) => evaluationOf(point.decide(one, req.headers)))
      if (path === '/access/v1/evaluation' && !evaluations) return sendJson(res, answers[0])
      if (path === '/access/v1/evaluations' && evaluations && point.batches)
        return sendJson(res, { evaluations: answers })
      sendJson(res, {}, 404)
    },
    tls && { ...tls, requestCert: true, rejectUnauthorized: true },
  )
  const point: TestAuthzenPoint = { url: origin, asked: [], decide, answer: undefined, batches: true, close }
  return point
}

function evaluationOf(decision: unknown): unknown {
  return typeof decision === 'boolean' ? { decision, context: { reason: 'secret reason' } } : decision
}
