/**
 * Real MCP clients for tests: the first generation of the SDK (sessions) and the second in either era, all with the
 * same responses to requests of a server.
 */
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioTransport2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport as StdioTransport1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'

export type ClientKind = 'sdk1' | 'sdk2-session' | 'sdk2-stateless'

/** Clients over HTTP, with the deprecated transport, as the conformance page describes them. */
export const httpClients = {
  sdk1: { name: 'TypeScript SDK 1', era: 'session', transport: 'streamable HTTP' },
  'sdk1-sse': { name: 'TypeScript SDK 1', era: 'session', transport: 'HTTP+SSE' },
  'sdk2-session': { name: 'TypeScript SDK 2', era: 'session', transport: 'streamable HTTP' },
  'sdk2-stateless': { name: 'TypeScript SDK 2', era: 'stateless', transport: 'streamable HTTP' },
} as const

export interface CallOptions {
  readonly onprogress?: (progress: { progress: number; total?: number | undefined }) => void
  readonly signal?: AbortSignal
  readonly timeout?: number
}

/** The interface of all clients in tests. */
export interface TestClient {
  readonly kind: ClientKind
  listTools(): Promise<{ name: string; description?: string | undefined; [key: string]: unknown }[]>
  /** Names of the tools on one page. */
  toolPage(cursor?: string): Promise<{ names: string[]; nextCursor: string | undefined }>
  listPrompts(): Promise<string[]>
  listResources(): Promise<string[]>
  listTemplates(): Promise<string[]>
  /** Text of the first content, prefixed with `!` when the result is an error. */
  callText(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Record<string, unknown>>
  readText(uri: string): Promise<string>
  promptText(name: string, args?: Record<string, string>): Promise<string>
  complete(prompt: string, argument: string, value: string): Promise<string[]>
  completeTemplate(template: string, argument: string, value: string): Promise<string[]>
  /** Log messages of a call, at or above this level. */
  callForLogs(name: string, level: string): Promise<unknown[]>
  /** Subscribes to changed lists and to updates of a resource. Resolves with a function that unsubscribes. */
  watch(uri: string): Promise<() => Promise<void>>
  /** Resolves once `watch` has received this notification: `tools`, `prompts`, or the URI. */
  heard(wanted: string): Promise<void>
  version(): { name: string; version: string } | undefined
  /** Requests that the server sent to the client, by method. */
  readonly asked: string[]
  readonly sessionId: string | undefined
  close(): Promise<void>
}

const responses = {
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
  /** False: declares no capabilities. */
  readonly able?: boolean
  readonly headers?: Record<string, string>
  /** Uses the deprecated HTTP+SSE transport. */
  readonly sse?: boolean
  /** The client accepts forms unchanged: the SDK fills in their defaults (sdk1). */
  readonly fillsInDefaults?: boolean
}

/** Connects over HTTP. */
export function connect(kind: ClientKind, url: string, options: ConnectOptions = {}): Promise<TestClient> {
  const init = { requestInit: { headers: options.headers ?? {} } }
  const address = new URL(url)
  return connectOver(
    kind,
    () => (options.sse ? new SSEClientTransport(address, init) : new Transport1(address, init)),
    () => new Transport2(address, init),
    options,
  )
}

export interface Program {
  readonly command: string
  readonly args: string[]
}

/** Starts a program and connects to it over its standard streams. */
export function connectToProgram(
  kind: ClientKind,
  program: Program,
  options: ConnectOptions = {},
): Promise<TestClient> {
  const params = { ...program, stderr: 'pipe' as const }
  return connectOver(
    kind,
    () => new StdioTransport1(params),
    () => new StdioTransport2(params),
    options,
  )
}

async function connectOver(
  kind: ClientKind,
  makeTransport1: () => SSEClientTransport | Transport1 | StdioTransport1,
  makeTransport2: () => Transport2 | StdioTransport2,
  options: ConnectOptions,
): Promise<TestClient> {
  const able = options.able ?? true
  const form = options.fillsInDefaults ? { applyDefaults: true } : {}
  const capabilities = able
    ? { elicitation: { form, url: {} }, sampling: {}, roots: { listChanged: true } }
    : {}
  const asked: string[] = []
  const news = new News()
  if (kind === 'sdk1') {
    const client = new Client1({ name: 'sdk1', version: '1' }, { capabilities })
    if (able) {
      client.setRequestHandler(ElicitRequestSchema, () => {
        asked.push('elicitation/create')
        return options.fillsInDefaults ? { action: 'accept' as const, content: {} } : responses.elicitation
      })
      client.setRequestHandler(CreateMessageRequestSchema, () => {
        asked.push('sampling/createMessage')
        return responses.sampling
      })
      client.setRequestHandler(ListRootsRequestSchema, () => {
        asked.push('roots/list')
        return responses.roots
      })
    }
    const transport = makeTransport1()
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => news.log(params.data))
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => news.hear('tools'))
    client.setNotificationHandler(PromptListChangedNotificationSchema, () => news.hear('prompts'))
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => news.hear(params.uri))
    await client.connect(transport)
    return wrap(kind, client as never, asked, news, () =>
      'sessionId' in transport ? transport.sessionId : undefined,
    )
  }
  const mode = kind === 'sdk2-session' ? ('legacy' as const) : ('auto' as const)
  const client = new Client2({ name: kind, version: '1' }, { capabilities, versionNegotiation: { mode } })
  if (able) {
    client.setRequestHandler('elicitation/create', () => {
      asked.push('elicitation/create')
      return responses.elicitation
    })
    client.setRequestHandler('sampling/createMessage', () => {
      asked.push('sampling/createMessage')
      return responses.sampling
    })
    client.setRequestHandler('roots/list', () => {
      asked.push('roots/list')
      return responses.roots
    })
  }
  client.setNotificationHandler('notifications/message', ({ params }) => news.log(params.data))
  client.setNotificationHandler('notifications/tools/list_changed', () => news.hear('tools'))
  client.setNotificationHandler('notifications/prompts/list_changed', () => news.hear('prompts'))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => news.hear(params.uri))
  const transport = makeTransport2()
  await client.connect(transport)
  return wrap(kind, client as never, asked, news, () =>
    'sessionId' in transport ? transport.sessionId : undefined,
  )
}

/** Unsolicited messages of a server, in order of arrival. */
class News {
  readonly logs: unknown[] = []
  readonly #heard: string[] = []
  readonly #waiting = new Set<() => void>()

  log(data: unknown): void {
    this.logs.push(data)
  }

  hear(what: string): void {
    this.#heard.push(what)
    for (const wake of this.#waiting) wake()
  }

  async heard(wanted: string): Promise<void> {
    for (;;) {
      const at = this.#heard.indexOf(wanted)
      if (at >= 0) {
        this.#heard.splice(at, 1)
        return
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }
}

/** The part that both clients share. */
interface SdkClient {
  listTools(params?: { cursor?: string }): Promise<{ tools: { name: string }[]; nextCursor?: string }>
  setLoggingLevel(level: string): Promise<unknown>
  subscribeResource(params: { uri: string }): Promise<unknown>
  unsubscribeResource(params: { uri: string }): Promise<unknown>
  listen(filter: unknown): Promise<{ close(): Promise<void> }>
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
  news: News,
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
    async toolPage(cursor) {
      const { tools, nextCursor } = await client.listTools(cursor === undefined ? {} : { cursor })
      return { names: tools.map(({ name }) => name), nextCursor }
    },
    async completeTemplate(template, argument, value) {
      const params = { ref: { type: 'ref/resource', uri: template }, argument: { name: argument, value } }
      return (await client.complete(params)).completion.values
    },
    async callForLogs(name, level) {
      news.logs.length = 0
      if (kind === 'sdk2-stateless') {
        await client.callTool({
          name,
          arguments: {},
          _meta: { 'io.modelcontextprotocol/logLevel': level },
        })
      } else {
        await client.setLoggingLevel(level)
        await call(name)
      }
      return [...news.logs]
    },
    async watch(uri) {
      if (kind === 'sdk2-stateless') {
        const filter = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: [uri] }
        const subscription = await client.listen(filter)
        return () => subscription.close()
      }
      await client.subscribeResource({ uri })
      return async () => void (await client.unsubscribeResource({ uri }))
    },
    heard: (wanted) => news.heard(wanted),
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
