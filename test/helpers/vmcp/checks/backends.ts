/** Backends whose tools, prompts and resources are named after the reasons to reject their calls. */
import type { ServerResponse } from 'node:http'
import { json, type RawBackend, type RawRequest, startRawBackend } from '../../mcp/raw-backend.ts'
import { type BackendName, backendOf, has, refusedWord, uriFor } from './reasons.ts'

/** Text of a result that guardrails reject. */
const refusedText = `found ${refusedWord}`

const object = (properties: object) => ({ type: 'object', properties })
const text = { type: 'string' }
const region = { type: 'string', 'x-mcp-header': 'Region' }

/** The definition of a tool as it was approved. */
export function approvedTool(name: string): object {
  return {
    name,
    description: `Rejected for: ${name}`,
    inputSchema: object({ text, ...(has(name, 'header-mismatch') ? { region } : {}) }),
  }
}

/** The definition of a prompt as it was approved. */
export function approvedPrompt(name: string): object {
  return { name, description: `Rejected for: ${name}`, arguments: [{ name: 'text' }] }
}

export function approvedTemplate(name: string): object {
  return { uriTemplate: `test://${name}/{id}`, name }
}

/** The listed definition. It differs from the approved one when the approved arguments are checked. */
function offered(name: string, approved: object): object {
  return has(name, 'pinned-arguments') ? { ...approved, description: 'Changed after the approval' } : approved
}

const requestsOfClients: ReadonlySet<string> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
  'completion/complete',
])

export interface NamedItems {
  readonly tools: readonly string[]
  readonly prompts: readonly string[]
  readonly resources: readonly string[]
}

export interface ChecksBackend extends Pick<RawBackend, 'url' | 'close'> {
  /** Received client requests, as `method name`, without lists and handshakes. */
  reached(): readonly string[]
}

/** Starts a backend with the items that belong to it. */
export async function startChecksBackend(backend: BackendName, items: NamedItems): Promise<ChecksBackend> {
  const own = (names: readonly string[]) =>
    names.filter((name) => backendOf(name) === backend && !has(name, 'unknown'))
  const list = (member: string, all: readonly object[]) => JSON.stringify({ [member]: all })
  const raw = await startRawBackend({
    capabilities: JSON.stringify({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true },
      completions: {},
    }),
    tools: () => own(items.tools).map((name) => JSON.stringify(offered(name, approvedTool(name)))),
    responses: {
      'prompts/list': () =>
        list(
          'prompts',
          own(items.prompts).map((name) => offered(name, approvedPrompt(name))),
        ),
      'resources/list': () =>
        list(
          'resources',
          own(items.resources).map((name) => ({ uri: uriFor(name), name })),
        ),
      'resources/templates/list': () => list('resourceTemplates', own(items.prompts).map(approvedTemplate)),
      'tools/call': (request) => respond(request, (said) => ({ content: [{ type: 'text', text: said }] })),
      'prompts/get': (request) =>
        respond(request, (said) => ({
          messages: [{ role: 'user', content: { type: 'text', text: said } }],
        })),
      'resources/read': (request) =>
        respond(request, (said) => ({ contents: [{ uri: request.params['uri'], text: said }] })),
      'completion/complete': (request) => respond(request, (said) => ({ completion: { values: [said] } })),
    },
  })
  return {
    url: raw.url,
    close: () => raw.close(),
    reached: () =>
      raw.requests
        .filter(({ method }) => requestsOfClients.has(method))
        .map((request) => `${request.method} ${subjectOf(request)}`),
  }
}

/** Name of the requested item. */
function subjectOf({ params }: RawRequest): string {
  const { name, uri } = (params['ref'] ?? params) as Readonly<Record<string, unknown>>
  return String(name ?? uri)
}

function respond(request: RawRequest, resultOf: (text: string) => object): string | undefined {
  const name = subjectOf(request)
  if (has(name, 'backend-error')) return fail(request, -32050, 'the backend refused')
  if (has(name, 'backend-header-mismatch')) return fail(request, -32020, 'the headers do not fit')
  if (has(name, 'backend-http-error')) {
    request.res.writeHead(500).end()
    return undefined
  }
  const result = resultOf(has(name, 'guarded-result') ? refusedText : 'done')
  return JSON.stringify(has(name, 'tool-error') ? { ...result, isError: true } : result)
}

function fail({ id, res }: { id: string; res: ServerResponse }, code: number, message: string): undefined {
  json(res, `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message })}}`)
  return undefined
}
