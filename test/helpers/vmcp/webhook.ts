/** A webhook over HTTPS, for tests: it records its requests and returns the responses of the test. */
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { makeCertificates } from '../redis.ts'
import { sendJson, startJsonServer } from './json-server.ts'

export interface McpRequest {
  readonly jsonrpc: string
  readonly id: unknown
  readonly method: string
  readonly params: Record<string, unknown> & { readonly arguments?: Record<string, unknown> }
}

export interface WebhookRequest {
  readonly version: string
  readonly uid: string
  readonly timestamp: string
  readonly principal: Record<string, unknown>
  readonly mcp_request: McpRequest
  readonly mcp_response?: Record<string, unknown>
  readonly context: Record<string, unknown>
}

export interface AskedWebhook {
  readonly request: WebhookRequest
  readonly text: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

/** Members of a response in addition to version and uid. A function sends the whole response itself. */
export type WebhookReply =
  | Record<string, unknown>
  | ((res: ServerResponse, request: WebhookRequest, req: IncomingMessage) => void)

export interface TestWebhook {
  readonly url: string
  readonly asked: AskedWebhook[]
  reply: (request: WebhookRequest) => WebhookReply
  /** Number of requests about calls of a tool. */
  calls(tool?: string): AskedWebhook[]
  close(): Promise<void>
}

export const certificates = makeCertificates()
process.on('exit', () => certificates.remove())

export const allow: Record<string, unknown> = { allowed: true }
export const deny = (message?: string, reason?: string): Record<string, unknown> => ({
  allowed: false,
  message,
  reason,
})
export const patch = (...operations: readonly Record<string, unknown>[]): Record<string, unknown> => ({
  allowed: true,
  patch_type: 'json_patch',
  patch: operations,
})

/** Responds in the wire format. */
export function answer(res: ServerResponse, { uid }: WebhookRequest, more: Record<string, unknown>): void {
  sendJson(res, { version: 'v0.1.0', uid, ...more })
}

/** With `mutual`, clients must present a certificate of the test authority. */
export async function startWebhook(
  reply: TestWebhook['reply'] = () => allow,
  { mutual = false }: { readonly mutual?: boolean } = {},
): Promise<TestWebhook> {
  const { keyFile, certFile, ca } = certificates
  const tls = { key: readFileSync(keyFile), cert: readFileSync(certFile), ca }
  const { origin, close } = await startJsonServer(
    (text, req, res) => {
      const request = JSON.parse(text) as WebhookRequest
      webhook.asked.push({ request, text, path: req.url ?? '', headers: req.headers })
      const given = webhook.reply(request)
      if (typeof given === 'function') given(res, request, req)
      else answer(res, request, given)
    },
    { ...tls, requestCert: mutual, rejectUnauthorized: mutual },
  )
  const webhook: TestWebhook = {
    url: `${origin}/hook`,
    asked: [],
    reply,
    calls: (tool) =>
      webhook.asked.filter(
        ({ request: { mcp_request: asked } }) => tool === undefined || asked.params['name'] === tool,
      ),
    close,
  }
  return webhook
}
