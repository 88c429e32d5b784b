/** A stateless backend with the tool `say`, which asks for a color before it answers. */
import { randomUUID } from 'node:crypto'
import { sendJson, startJsonServer } from './json-server.ts'

export interface AskingBackend {
  readonly url: string
  /** Params of every `tools/call`. */
  readonly calls: Record<string, unknown>[]
  close(): Promise<void>
}

export interface AskingBackendOptions {
  /** State that is sent with the request to the user. Undefined: none. Default: a random one. */
  readonly state?: () => string | undefined
}

const question = {
  method: 'elicitation/create',
  params: {
    message: 'Which color?',
    requestedSchema: { type: 'object', properties: { color: { type: 'string' } } },
  },
}
const discovered = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
}

export async function startAskingBackend(
  name: string,
  { state = randomUUID }: AskingBackendOptions = {},
): Promise<AskingBackend> {
  const calls: Record<string, unknown>[] = []
  const resultOf = (method: string, params: Record<string, unknown>): unknown => {
    if (method === 'server/discover') return discovered
    if (method === 'tools/list')
      return { resultType: 'complete', tools: [{ name: 'say', inputSchema: { type: 'object' } }] }
    if (method !== 'tools/call') return { resultType: 'complete' }
    calls.push(params)
    if (params['inputResponses'] === undefined)
      return { resultType: 'input_required', inputRequests: { color: question }, requestState: state() }
    const text = `${name} got ${JSON.stringify(params['inputResponses'])}`
    return { resultType: 'complete', content: [{ type: 'text', text }] }
  }
  const server = await startJsonServer((text, _req, res) => {
    if (text === '') {
      res.writeHead(405).end()
      return
    }
    const { id, method, params } = JSON.parse(text)
    if (id === undefined) res.writeHead(202).end()
    else sendJson(res, { jsonrpc: '2.0', id, result: resultOf(method, params ?? {}) })
  })
  return { url: `${server.origin}/mcp`, calls, close: () => server.close() }
}
