/** A backend that shows its caller: its tools are named after the credential, and its calls return their session. */
import type { Test } from 'tap'
import {
  type RawBackend,
  type RawBackendOptions,
  startRawBackend,
  textResult,
} from '../../mcp/raw-backend.ts'

/**
 * Starts a backend whose tools are named after the key or token of the request, and whose calls return their session.
 */
export async function startKeyed(
  t: Test,
  more: RawBackendOptions = {},
): Promise<RawBackend & { readonly named: ReadonlySet<unknown> }> {
  /** Session ids in requests, known or not. */
  const named = new Set<unknown>()
  const key = (headers: Record<string, string | string[] | undefined>): string =>
    String(headers['x-api-key'] ?? headers['authorization'] ?? 'none').replace(/\W/g, '')
  const backend = await startRawBackend({
    before(req) {
      named.add(req.headers['mcp-session-id'])
      return false
    },
    ...more,
    responses: {
      'tools/list': ({ headers }) =>
        `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"of-${key(headers)}","inputSchema":{"type":"object"}}]}`,
      'tools/call': ({ headers }) => textResult(String(headers['mcp-session-id'])),
      ...more.responses,
    },
  })
  t.teardown(() => backend.close())
  return { ...backend, named }
}

/** Session of a call. */
export function sessionIn(answer: {
  response: { result?: Record<string, unknown> | undefined } | undefined
}): string {
  const content = answer.response?.result?.['content'] as { text: string }[] | undefined
  return content?.[0]?.text ?? 'none'
}

/** Tools of the credential. */
export function toolsIn(answer: { text: string }): string[] {
  return [...answer.text.matchAll(/"name":"raw_(of-\w+)"/g)].map(([, name = '']) => name)
}
