/** The fixture backend of the session era, on the first generation of the SDK, with streamable HTTP and the old SSE. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListRootsResultSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type ServerNotification,
  type ServerRequest,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import {
  askForUser,
  askingPrompt,
  askWithDefaults,
  askWithEnums,
  commonTools,
  complete,
  fixedResults,
  getPrompt,
  prompts,
  readResource,
  resources,
  resourceTemplates,
  sessionIdTool,
  sessionTools,
  statelessTools,
} from './content.ts'
import { extraPrompt, type FixtureState, pageOf } from './state.ts'

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

export interface SessionServer {
  handle(req: IncomingMessage, res: ServerResponse, path: string): Promise<void>
  close(): Promise<void>
}

export function makeSessionServer(state: FixtureState): SessionServer {
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const oldTransports = new Map<string, SSEServerTransport>()
  const servers = new Set<Server>()

  async function open(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => void transports.delete(id),
    })
    const server = makeServer(state)
    servers.add(server)
    await server.connect(transport)
    await transport.handleRequest(req, res)
  }

  async function old(req: IncomingMessage, res: ServerResponse, path: string): Promise<void> {
    if (path === '/sse') {
      const transport = new SSEServerTransport('/messages', res)
      oldTransports.set(transport.sessionId, transport)
      const server = makeServer(state)
      servers.add(server)
      await server.connect(transport)
      return
    }
    const id = new URL(req.url ?? '/', 'http://fixture').searchParams.get('sessionId') ?? ''
    const transport = oldTransports.get(id)
    if (transport) await transport.handlePostMessage(req, res)
    else res.writeHead(404).end()
  }

  return {
    async handle(req, res, path) {
      if (path === '/sse' || path === '/messages') return old(req, res, path)
      const id = req.headers['mcp-session-id']
      if (typeof id !== 'string') return open(req, res)
      const transport = transports.get(id)
      if (transport) await transport.handleRequest(req, res)
      else
        res
          .writeHead(404, { 'content-type': 'application/json' })
          .end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}')
    },
    async close() {
      await Promise.all([...servers].map((server) => server.close()))
    },
  }
}

/** Creates one server. The caller connects it to a transport. */
export function makeServer(state: FixtureState): Server {
  const server = new Server(
    { name: 'fixture-session', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        completions: {},
      },
    },
  )
  const subscriptions = new Set<string>()
  const onTools = () => void server.sendToolListChanged().catch(() => {})
  const onPrompts = () => void server.sendPromptListChanged().catch(() => {})
  const onUpdated = (uri: string) => {
    if (subscriptions.has(uri)) void server.sendResourceUpdated({ uri }).catch(() => {})
  }
  state.events.on('tools', onTools).on('prompts', onPrompts).on('updated', onUpdated)
  server.onclose = () => {
    state.events.off('tools', onTools).off('prompts', onPrompts).off('updated', onUpdated)
  }
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) =>
    pageOf([...commonTools, ...sessionTools, sessionIdTool, ...statelessTools], state, params?.cursor),
  )
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: [...prompts, askingPrompt, ...(state.extraPrompt ? [extraPrompt] : [])],
  }))
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => {
    const read = readResource(params.uri)
    if (!read) throw new McpError(-32002, 'Resource not found', { uri: params.uri })
    return read
  })
  server.setRequestHandler(GetPromptRequestSchema, async ({ params }, extra) => {
    if (params.name === askingPrompt.name) {
      const { context } = await fillIn(extra, 'What context should the prompt use?', 'context')
      return {
        messages: [{ role: 'user' as const, content: { type: 'text' as const, text: String(context) } }],
      }
    }
    const prompt = getPrompt(params.name, params.arguments ?? {})
    if (!prompt) throw new McpError(-32602, 'unknown prompt')
    return prompt
  })
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => complete(params.argument.value))
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscriptions.add(params.uri)
    return {}
  })
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscriptions.delete(params.uri)
    return {}
  })
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) =>
    callTool(server, state, params, extra),
  )
  return server
}

function text(value: string) {
  return { content: [{ type: 'text' as const, text: value }] }
}

interface CallParams {
  readonly name: string
  readonly arguments?: Record<string, unknown> | undefined
  readonly _meta?: { progressToken?: string | number | undefined } | undefined
}

async function callTool(
  server: Server,
  state: FixtureState,
  params: CallParams,
  extra: Extra,
): Promise<never> {
  const fixed = fixedResults[params.name]
  if (fixed) return fixed as never
  return (await run(server, state, params, extra)) as never
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function run(server: Server, state: FixtureState, params: CallParams, extra: Extra): Promise<unknown> {
  switch (params.name) {
    case 'echo':
      return text(JSON.stringify(params.arguments ?? {}))
    case 'session_id':
      return text(extra.sessionId ?? '')
    case 'wait':
      return waitForCancel(state, extra.signal)
    case 'test_trigger_tool_change':
      state.toggleTool()
      return text('toggled')
    case 'test_trigger_prompt_change':
      state.togglePrompt()
      return text('toggled')
    case 'test_trigger_resource_update':
      state.update('test://watched-resource')
      return text('updated')
    case 'test_tool_with_progress':
      return reportProgress(params, extra)
    case 'test_tool_with_logging':
      return logThrice(extra)
    case 'test_logging_tool':
      await extra.sendNotification({
        method: 'notifications/message',
        params: { level: 'info', logger: 'fixture', data: 'a log message' },
      })
      return text('logged')
    default:
      return params.name.startsWith('test_input_required_result') || statelessOnly.has(params.name)
        ? askAsRequests(server, params.name, extra)
        : askClient(params, extra)
  }
}

function waitForCancel(state: FixtureState, signal: AbortSignal): Promise<unknown> {
  state.events.emit('waiting')
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      state.events.emit('cancelled')
      reject(new Error('cancelled'))
    })
  })
}

async function reportProgress(params: CallParams, extra: Extra): Promise<unknown> {
  const progressToken = params._meta?.progressToken
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      })
    }
    await pause(50)
  }
  return text('done')
}

async function logThrice(extra: Extra): Promise<unknown> {
  for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await extra.sendNotification({
      method: 'notifications/message',
      params: { level: 'info', logger: 'fixture', data },
    })
    await pause(50)
  }
  return text('logged')
}

const statelessOnly: ReadonlySet<string> = new Set(['test_streaming_elicitation', 'test_missing_capability'])

/** One form field for the user. */
async function fillIn(
  extra: Extra,
  message: string,
  property: string,
  type: 'string' | 'boolean' = 'string',
): Promise<Record<string, unknown>> {
  const schema = type === 'string' ? { type: 'string' as const } : { type: 'boolean' as const }
  const { content } = await extra.sendRequest(
    {
      method: 'elicitation/create',
      params: {
        message,
        requestedSchema: { type: 'object', properties: { [property]: schema }, required: [property] },
      },
    },
    ElicitResultSchema,
  )
  return content ?? {}
}

function sample(extra: Extra, question: string, maxTokens = 100) {
  return extra.sendRequest(
    {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: question } }], maxTokens },
    },
    CreateMessageResultSchema,
  )
}

/** Sends the requests that the stateless fixture puts into results, as this era does: while the call runs. */
async function askAsRequests(server: Server, name: string, extra: Extra): Promise<unknown> {
  switch (name) {
    case 'test_input_required_result_elicitation':
    case 'test_streaming_elicitation':
      return text(`Hello, ${String((await fillIn(extra, 'What is your name?', 'name'))['name'])}!`)
    case 'test_input_required_result_sampling':
      await sample(extra, 'What is the capital of France?')
      return text('sampled')
    case 'test_input_required_result_list_roots':
      return text(
        `roots: ${JSON.stringify(await extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema))}`,
      )
    case 'test_input_required_result_request_state':
    case 'test_input_required_result_tampered_state':
      await fillIn(extra, 'Please confirm', 'ok', 'boolean')
      return text('state-ok')
    case 'test_input_required_result_multiple_inputs':
      await Promise.all([
        fillIn(extra, 'What is your name?', 'name'),
        sample(extra, 'Generate a greeting', 50),
        extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema),
      ])
      return text('all-ok')
    case 'test_input_required_result_multi_round':
      await fillIn(extra, 'Step 1: What is your name?', 'name')
      await fillIn(extra, 'Step 2: What is your favorite color?', 'color')
      return text('rounds-ok')
    case 'test_input_required_result_capabilities': {
      const able = server.getClientCapabilities()
      if (able?.sampling) await sample(extra, 'Hello')
      if (able?.elicitation) await fillIn(extra, 'Hello', 'name')
      return text('asked')
    }
    case 'test_missing_capability':
      await sample(extra, 'Hello')
      return text('capable')
    default:
      throw new McpError(-32602, `unknown tool ${name}`)
  }
}

async function askClient(params: CallParams, extra: Extra): Promise<unknown> {
  const args = params.arguments ?? {}
  const elicit = (message: string, requestedSchema: unknown) =>
    extra.sendRequest(
      { method: 'elicitation/create', params: { message, requestedSchema: requestedSchema as never } },
      ElicitResultSchema,
    )
  switch (params.name) {
    case 'test_sampling': {
      const content = { type: 'text' as const, text: String(args['prompt']) }
      const sampled = await extra.sendRequest(
        {
          method: 'sampling/createMessage',
          params: { messages: [{ role: 'user', content }], maxTokens: 100 },
        },
        CreateMessageResultSchema,
      )
      return text(`LLM response: ${sampled.content.type === 'text' ? sampled.content.text : ''}`)
    }
    case 'test_elicitation': {
      const { action, content } = await elicit(String(args['message']), askForUser)
      return text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`)
    }
    case 'test_elicitation_sep1034_defaults':
    case 'test_elicitation_sep1330_enums': {
      const schema = params.name.endsWith('defaults') ? askWithDefaults : askWithEnums
      const { action, content } = await elicit('Please fill in', schema)
      return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)
    }
    case 'test_elicitation_url': {
      const { action } = await extra.sendRequest(
        {
          method: 'elicitation/create',
          params: {
            mode: 'url',
            message: 'Sign in',
            url: 'https://example.com/sign-in',
            elicitationId: 'e-1',
          },
        },
        ElicitResultSchema,
      )
      return text(`action=${action}`)
    }
    case 'test_roots': {
      const { roots } = await extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema)
      return text(roots.map(({ uri }) => uri).join())
    }
    case 'test_two_questions': {
      const first = await elicit('first', askForUser)
      const second = await elicit('second', askForUser)
      return text(`${JSON.stringify(first.content)} ${JSON.stringify(second.content)}`)
    }
    default:
      throw new McpError(-32602, `unknown tool ${params.name}`)
  }
}
