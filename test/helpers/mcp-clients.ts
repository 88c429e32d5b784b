/**
 * Real MCP clients for tests: the first generation of the SDK (sessions) and the second in either era, all with the
 * same answers to what a server may ask.
 */
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

export type ClientKind = 'sdk1' | 'sdk2-session' | 'sdk2-stateless'

export interface CallOptions {
  readonly onprogress?: (progress: { progress: number; total?: number | undefined }) => void
  readonly signal?: AbortSignal
  readonly timeout?: number
}

/** What tests use of a client, whichever it is. */
export interface TestClient {
  readonly kind: ClientKind
  listTools(): Promise<{ name: string; description?: string | undefined; [key: string]: unknown }[]>
  listPrompts(): Promise<string[]>
  listResources(): Promise<string[]>
  listTemplates(): Promise<string[]>
  /** Text of the first content, with `!` in front when the result is an error. */
  callText(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Record<string, unknown>>
  readText(uri: string): Promise<string>
  promptText(name: string, args?: Record<string, string>): Promise<string>
  complete(prompt: string, argument: string, value: string): Promise<string[]>
  version(): { name: string; version: string } | undefined
  /** Questions that were asked, by method. */
  readonly asked: string[]
  readonly sessionId: string | undefined
  close(): Promise<void>
}

const answers = {
  elicitation: {
    action: 'accept' as const,
    content: {
      username: 'ada',
      email: 'ada@example.com',
      name: 'ada',
      ok: true,
      color: 'blue',
      context: 'here',
    },
  },
  sampling: {
    role: 'assistant' as const,
    model: 'test',
    content: { type: 'text' as const, text: 'sampled text' },
  },
  roots: { roots: [{ uri: 'file:///project', name: 'project' }] },
}

export interface ConnectOptions {
  /** False declares no capabilities at all. */
  readonly able?: boolean
  readonly headers?: Record<string, string>
  /** Over the old SSE transport. */
  readonly sse?: boolean
  /** Forms are accepted as they stand: the SDK fills in what they suggest (sdk1). */
  readonly fillsInDefaults?: boolean
}

/** Connects. */
export async function connect(
  kind: ClientKind,
  url: string,
  options: ConnectOptions = {},
): Promise<TestClient> {
  const able = options.able ?? true
  const form = options.fillsInDefaults ? { applyDefaults: true } : {}
  const capabilities = able
    ? { elicitation: { form, url: {} }, sampling: {}, roots: { listChanged: true } }
    : {}
  const init = { requestInit: { headers: options.headers ?? {} } }
  const asked: string[] = []
  if (kind === 'sdk1') {
    const client = new Client1({ name: 'sdk1', version: '1' }, { capabilities })
    if (able) {
      client.setRequestHandler(ElicitRequestSchema, () => {
        asked.push('elicitation/create')
        return options.fillsInDefaults ? { action: 'accept' as const, content: {} } : answers.elicitation
      })
      client.setRequestHandler(CreateMessageRequestSchema, () => {
        asked.push('sampling/createMessage')
        return answers.sampling
      })
      client.setRequestHandler(ListRootsRequestSchema, () => {
        asked.push('roots/list')
        return answers.roots
      })
    }
    const transport = options.sse
      ? new SSEClientTransport(new URL(url), init)
      : new Transport1(new URL(url), init)
    await client.connect(transport)
    return wrap(kind, client as never, asked, () =>
      'sessionId' in transport ? transport.sessionId : undefined,
    )
  }
  const mode = kind === 'sdk2-session' ? ('legacy' as const) : ('auto' as const)
  const client = new Client2({ name: kind, version: '1' }, { capabilities, versionNegotiation: { mode } })
  if (able) {
    client.setRequestHandler('elicitation/create', () => {
      asked.push('elicitation/create')
      return answers.elicitation
    })
    client.setRequestHandler('sampling/createMessage', () => {
      asked.push('sampling/createMessage')
      return answers.sampling
    })
    client.setRequestHandler('roots/list', () => {
      asked.push('roots/list')
      return answers.roots
    })
  }
  const transport = new Transport2(new URL(url), init)
  await client.connect(transport)
  return wrap(kind, client as never, asked, () => transport.sessionId)
}

/** The part of both clients that is alike. */
interface SdkClient {
  listTools(): Promise<{ tools: { name: string }[] }>
  listPrompts(): Promise<{ prompts: { name: string }[] }>
  listResources(): Promise<{ resources: { uri: string }[] }>
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>
  readResource(params: { uri: string }): Promise<{ contents: { text?: string }[] }>
  getPrompt(params: {
    name: string
    arguments?: Record<string, string>
  }): Promise<{ messages: { content: { text?: string } }[] }>
  complete(params: unknown): Promise<{ completion: { values: string[] } }>
  callTool(params: unknown, ...rest: unknown[]): Promise<Record<string, unknown>>
  getServerVersion(): { name: string; version: string } | undefined
  close(): Promise<void>
}

function wrap(
  kind: ClientKind,
  client: SdkClient,
  asked: string[],
  sessionId: () => string | undefined,
): TestClient {
  const call = (name: string, args: Record<string, unknown> = {}, options: CallOptions = {}) =>
    kind === 'sdk1'
      ? client.callTool({ name, arguments: args }, undefined, options)
      : client.callTool({ name, arguments: args }, options)
  return {
    kind,
    asked,
    get sessionId() {
      return sessionId()
    },
    async listTools() {
      return (await client.listTools()).tools
    },
    async listPrompts() {
      return (await client.listPrompts()).prompts.map(({ name }) => name)
    },
    async listResources() {
      return (await client.listResources()).resources.map(({ uri }) => uri)
    },
    async listTemplates() {
      return (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)
    },
    call,
    async callText(name, args, options) {
      const result = await call(name, args, options)
      const [first] = result['content'] as { text?: string }[]
      return `${result['isError'] === true ? '!' : ''}${first?.text ?? ''}`
    },
    async readText(uri) {
      return (await client.readResource({ uri })).contents[0]?.text ?? ''
    },
    async promptText(name, args) {
      return (
        (await client.getPrompt(args ? { name, arguments: args } : { name })).messages[0]?.content.text ?? ''
      )
    },
    async complete(prompt, argument, value) {
      const params = { ref: { type: 'ref/prompt', name: prompt }, argument: { name: argument, value } }
      return (await client.complete(params)).completion.values
    },
    version: () => client.getServerVersion(),
    close: () => client.close(),
  }
}
