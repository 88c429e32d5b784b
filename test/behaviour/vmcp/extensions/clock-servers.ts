/** Two servers with pages (MCP Apps) behind a virtual server, and clients of both eras. */
import { type AppServer, page, startAppServer } from '../../../helpers/mcp/app-server.ts'
import { openSession, type RpcMessage, stateless } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

export const capabilities = {
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
}
export const uri = 'ui://clock/view.html'
export type Fields = Record<string, unknown>
export type Request = (method: string, params?: Fields) => Promise<RpcMessage | undefined>

/** Tools of a server with a page: a tool with a page, a tool that only the page calls, and a tool with a unique name. */
function toolsOf(own: string) {
  return [
    {
      name: 'show',
      _meta: { ui: { resourceUri: uri }, 'ui/resourceUri': uri, 'openai/outputTemplate': uri },
    },
    { name: 'refresh', _meta: { ui: { visibility: ['app'] } } },
    { name: own },
  ]
}

export function startClock(
  name: string,
  era: 'session' | 'stateless',
  own = `${name}-only`,
): Promise<AppServer> {
  const ui = {
    domain: 'abc.claudemcpcontent.com',
    prefersBorder: true,
    permissions: { camera: {}, microphone: {} },
    csp: {
      connectDomains: ['https://api.example', 'https://x.example; script-src *', 'http://[::1]'],
      resourceDomains: ['https://cdn.example'],
    },
  }
  return startAppServer({
    name,
    era,
    tools: toolsOf(own),
    resources: [{ uri, name: 'view', mimeType: 'text/html;profile=mcp-app', _meta: { ui } }],
    contents: {
      [uri]: page(uri, `<p>${name}: ui://clock/view.html</p>`, ui),
      'ui://unlisted/x': page('ui://unlisted/x', name),
    },
    results: {
      show: {
        content: [
          { type: 'resource_link', uri, name: 'view', big: 12345678901234567890n.toString() },
          { type: 'resource', resource: page(uri, `<p>${name}</p>`) },
          { type: 'text', text: uri },
        ],
        _meta: { ui: { resourceUri: uri } },
      },
    },
    prompt: { type: 'resource_link', uri, name: 'view' },
  })
}

export async function startPair(
  era: 'session' | 'stateless',
  more: Record<string, unknown> = {},
): Promise<{ url: string; alpha: AppServer; beta: AppServer; close: () => Promise<unknown> }> {
  const alpha = await startClock('alpha', era)
  const beta = await startClock('beta', era)
  const vmcp = await startTestVmcp({ alpha: alpha.url, beta: beta.url }, more)
  return { url: vmcp.url, alpha, beta, close: () => Promise.all([vmcp.close(), alpha.close(), beta.close()]) }
}

export async function clientOf(
  era: 'session' | 'stateless',
  url: string,
  able: unknown = capabilities,
): Promise<Request> {
  if (era === 'stateless')
    return async (method, params = {}) =>
      (await stateless(url, method, params, { capabilities: able })).response
  const session = await openSession(url, { capabilities: able })
  return async (method, params = {}) => (await session.request(method, params)).response
}

export async function names(request: Request): Promise<Fields[]> {
  return (await resultOf(request, 'tools/list'))['tools'] as Fields[]
}

export const eras = ['session', 'stateless'] as const

/** Returns the result of a request. Rejects if the server returned an error. */
export async function resultOf(request: Request, method: string, params: Fields = {}): Promise<Fields> {
  const response = await request(method, params)
  if (!response?.result) throw new Error(`${method}: ${JSON.stringify(response?.error)}`)
  return response.result
}

/** Returns a member of a JSON value. */
export function memberOf(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((found, key) => (found as Fields | undefined)?.[key], value)
}
