/** A backend that shows who asks: its tools are named after the credential, and its calls name their session. */
import type { Test } from 'tap'
import {
  type RawBackend,
  type RawBackendOptions,
  startRawBackend,
  textResult,
} from '../../mcp/raw-backend.ts'

/** A backend whose tools are named after the key or token that asks, and whose calls name their session. */
export async function startKeyed(
  t: Test,
  more: RawBackendOptions = {},
): Promise<RawBackend & { readonly named: ReadonlySet<unknown> }> {
  /** Session ids that requests have named, known or not. */
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

/** The session that a call ran in. */
export function sessionIn(answer: {
  response: { result?: Record<string, unknown> | undefined } | undefined
}): string {
  const content = answer.response?.result?.['content'] as { text: string }[] | undefined
  return content?.[0]?.text ?? 'none'
}

/** The tools of the credential. */
export function toolsIn(answer: { text: string }): string[] {
  return [...answer.text.matchAll(/"name":"raw_(of-\w+)"/g)].map(([, name = '']) => name)
}
