/** The fixture backend of the stateless era, on the second generation of the SDK. */
import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  inputRequired,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
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
  sessionTools,
  statelessTools,
} from './content.ts'
import { extraPrompt, type FixtureState, pageOf } from './state.ts'

export interface StatelessServer {
  handle(req: IncomingMessage, res: ServerResponse): Promise<void>
  close(): Promise<void>
}

const privateCache = { ttlMs: 0, cacheScope: 'private' } as const

export function makeStatelessServer(state: FixtureState): StatelessServer {
  const handler = createMcpHandler(() => makeServer(state), { legacy: 'reject', keepAliveMs: 0 })
  const onTools = () => handler.notify.toolsChanged()
  const onPrompts = () => handler.notify.promptsChanged()
  const onUpdated = (uri: string) => handler.notify.resourceUpdated(uri)
  state.events.on('tools', onTools).on('prompts', onPrompts).on('updated', onUpdated)
  return {
    async handle(req, res) {
      const gone = new AbortController()
      res.once('close', () => gone.abort())
      const headers = new Headers()
      for (const [name, value] of Object.entries(req.headers)) {
        if (typeof value === 'string') headers.set(name, value)
      }
      const body = req.method === 'POST' ? Readable.toWeb(req) : null
      const request = new Request(`http://${req.headers.host ?? 'fixture'}${req.url ?? '/'}`, {
        method: req.method ?? 'GET',
        headers,
        body: body as never,
        signal: gone.signal,
        ...{ duplex: 'half' },
      })
      const response = await handler.fetch(request)
      res.writeHead(response.status, Object.fromEntries(response.headers))
      res.flushHeaders()
      if (response.body)
        for await (const chunk of response.body as AsyncIterable<Uint8Array>) res.write(chunk)
      res.end()
    },
    async close() {
      state.events.off('tools', onTools).off('prompts', onPrompts).off('updated', onUpdated)
      await handler.close()
    },
  }
}

/** Creates one server. The caller connects it to a transport. */
export function makeServer(state: FixtureState): Server {
  const server = new Server(
    { name: 'fixture-stateless', version: '1.0.0' },
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
  server.setRequestHandler('tools/list', ({ params }) => ({
    ...(pageOf([...commonTools, ...statelessTools, ...sessionTools], state, params?.cursor) as {
      tools: never[]
      nextCursor?: string
    }),
    ...privateCache,
  }))
  server.setRequestHandler('prompts/list', () => ({
    prompts: [...prompts, askingPrompt, ...(state.extraPrompt ? [extraPrompt] : [])],
    ...privateCache,
  }))
  server.setRequestHandler('resources/list', () => ({ resources, ...privateCache }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates, ...privateCache }))
  server.setRequestHandler('resources/read', ({ params }) => {
    const read = readResource(params.uri)
    if (!read) throw new ProtocolError(-32602, 'Resource not found', { uri: params.uri })
    return { ...read, ...privateCache } as never
  })
  server.setRequestHandler('prompts/get', ({ params }, ctx) => {
    if (params.name === askingPrompt.name) return askForContext(ctx) as never
    const prompt = getPrompt(params.name, params.arguments ?? {})
    if (!prompt) throw new ProtocolError(-32602, 'unknown prompt')
    return prompt as never
  })
  server.setRequestHandler('completion/complete', ({ params }) => complete(params.argument.value))
  server.setRequestHandler('tools/call', ({ params }, ctx) => callTool(state, params, ctx) as never)
  return server
}

type Ctx = ServerContext

function text(value: string) {
  return { content: [{ type: 'text' as const, text: value }] }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Returns the accepted form content of a response, or undefined. */
function accepted(ctx: Ctx, key: string): Record<string, unknown> | undefined {
  const response = ctx.mcpReq.inputResponses?.[key]
  if (typeof response !== 'object' || response === null) return undefined
  const { action, content }: { action?: unknown; content?: unknown } = response
  return action === 'accept' && typeof content === 'object' && content !== null ? { ...content } : undefined
}

function responded(ctx: Ctx, key: string): boolean {
  const response = ctx.mcpReq.inputResponses?.[key]
  return typeof response === 'object' && response !== null
}

function form(message: string, property: string, type: 'string' | 'boolean' = 'string') {
  const schema = type === 'string' ? { type: 'string' as const } : { type: 'boolean' as const }
  return inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [property]: schema }, required: [property] },
  })
}

function sample(question: string, maxTokens = 100) {
  return inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: question } }],
    maxTokens,
  })
}

const key = randomBytes(32)

function sign(state: string): string {
  return `${state}.${createHmac('sha256', key).update(state).digest('base64url')}`
}

/** Throws -32602 for state that this server did not sign. */
function verified(signed: string | undefined): string | undefined {
  if (signed === undefined) return undefined
  const state = signed.slice(0, signed.lastIndexOf('.'))
  if (sign(state) !== signed) throw new ProtocolError(-32602, 'requestState is not valid')
  return state
}

function abilities(ctx: Ctx): { sampling?: unknown; elicitation?: unknown } {
  const envelope: Readonly<Record<string, unknown>> = { ...ctx.mcpReq.envelope }
  const declared = envelope[CLIENT_CAPABILITIES_META_KEY]
  return typeof declared === 'object' && declared !== null ? declared : {}
}

function askForContext(ctx: Ctx): unknown {
  const response = accepted(ctx, 'user_context')
  if (!response)
    return inputRequired({
      inputRequests: { user_context: form('What context should the prompt use?', 'context') },
    })
  return { messages: [{ role: 'user', content: { type: 'text', text: String(response['context']) } }] }
}

interface CallParams {
  readonly name: string
  readonly arguments?: Record<string, unknown> | undefined
}

async function callTool(state: FixtureState, params: CallParams, ctx: Ctx): Promise<unknown> {
  const fixed = fixedResults[params.name]
  if (fixed) return fixed
  switch (params.name) {
    case 'echo':
      return text(JSON.stringify(params.arguments ?? {}))
    case 'wait':
      state.events.emit('waiting')
      return new Promise((_resolve, reject) => {
        ctx.mcpReq.signal.addEventListener('abort', () => {
          state.events.emit('cancelled')
          reject(new Error('cancelled'))
        })
      })
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
      return reportProgress(ctx)
    case 'test_logging_tool':
      await ctx.mcpReq.log('info', 'a log message', 'fixture')
      return text('logged')
    case 'test_tool_with_logging':
      for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await ctx.mcpReq.log('info', data, 'fixture')
        await pause(50)
      }
      return text('logged')
    default:
      return sessionTools.some(({ name }) => name === params.name)
        ? askLikeSessions(params, ctx)
        : ask(params.name, ctx)
  }
}

async function reportProgress(ctx: Ctx): Promise<unknown> {
  const progressToken = ctx.mcpReq._meta?.progressToken
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      await ctx.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      })
    }
    await pause(50)
  }
  return text('done')
}

/** Puts the requests that the session fixture sends while a call runs into results, as this era does. */
function askLikeSessions(params: CallParams, ctx: Ctx): unknown {
  const args = params.arguments ?? {}
  const elicit = (message: string, requestedSchema: unknown) =>
    inputRequired.elicit({ message, requestedSchema: requestedSchema as never })
  const response = ctx.mcpReq.inputResponses?.['question'] as Record<string, unknown> | undefined
  const action = String(response?.['action'])
  const content = JSON.stringify(response?.['content'] ?? {})
  switch (params.name) {
    case 'test_sampling':
      if (!response) return question(sample(String(args['prompt'])))
      return text(`LLM response: ${String((response['content'] as { text?: string } | undefined)?.text)}`)
    case 'test_elicitation':
      if (!response) return question(elicit(String(args['message']), askForUser))
      return text(`User response: action=${action}, content=${content}`)
    case 'test_elicitation_sep1034_defaults':
      if (!response) return question(elicit('Please fill in', askWithDefaults))
      return text(`Elicitation completed: action=${action}, content=${content}`)
    case 'test_elicitation_sep1330_enums':
      if (!response) return question(elicit('Please fill in', askWithEnums))
      return text(`Elicitation completed: action=${action}, content=${content}`)
    case 'test_elicitation_url':
      if (!response)
        return question(inputRequired.elicitUrl({ message: 'Sign in', url: 'https://example.com/sign-in' }))
      return text(`action=${action}`)
    case 'test_roots': {
      if (!response) return question(inputRequired.listRoots())
      const roots = response['roots'] as { uri: string }[]
      return text(roots.map(({ uri }) => uri).join())
    }
    case 'test_two_questions': {
      const state = verified(ctx.mcpReq.requestState())
      if (state === undefined) {
        if (!response) return question(elicit('first', askForUser))
        return inputRequired({
          inputRequests: { question: elicit('second', askForUser) },
          requestState: sign(content),
        })
      }
      return text(`${state} ${content}`)
    }
    default:
      throw new ProtocolError(-32602, `unknown tool ${params.name}`)
  }
}

function question(asked: ReturnType<typeof form>): unknown {
  return inputRequired({ inputRequests: { question: asked } })
}

function ask(name: string, ctx: Ctx): unknown {
  const state = verified(ctx.mcpReq.requestState())
  switch (name) {
    case 'test_input_required_result_elicitation':
    case 'test_streaming_elicitation': {
      const response = accepted(ctx, 'user_name')
      return response
        ? text(`Hello, ${String(response['name'])}!`)
        : inputRequired({ inputRequests: { user_name: form('What is your name?', 'name') } })
    }
    case 'test_input_required_result_sampling':
      return responded(ctx, 'capital_question')
        ? text('sampled')
        : inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?') } })
    case 'test_input_required_result_list_roots':
      return responded(ctx, 'client_roots')
        ? text(`roots: ${JSON.stringify(ctx.mcpReq.inputResponses?.['client_roots'])}`)
        : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
    case 'test_input_required_result_request_state':
    case 'test_input_required_result_tampered_state':
      if (state !== undefined && accepted(ctx, 'confirm')) return text('state-ok')
      return inputRequired({
        inputRequests: { confirm: form('Please confirm', 'ok', 'boolean') },
        requestState: sign('confirm'),
      })
    case 'test_input_required_result_multiple_inputs':
      if (
        state !== undefined &&
        ['user_name', 'greeting', 'client_roots'].every((each) => responded(ctx, each))
      )
        return text('all-ok')
      return inputRequired({
        inputRequests: {
          user_name: form('What is your name?', 'name'),
          greeting: sample('Generate a greeting', 50),
          client_roots: inputRequired.listRoots(),
        },
        requestState: sign('multiple'),
      })
    case 'test_input_required_result_multi_round':
      if (state === 'round-2' && accepted(ctx, 'step2')) return text('rounds-ok')
      if (state === 'round-1' && accepted(ctx, 'step1')) {
        return inputRequired({
          inputRequests: { step2: form('Step 2: What is your favorite color?', 'color') },
          requestState: sign('round-2'),
        })
      }
      return inputRequired({
        inputRequests: { step1: form('Step 1: What is your name?', 'name') },
        requestState: sign('round-1'),
      })
    case 'test_input_required_result_capabilities': {
      const able = abilities(ctx)
      return inputRequired({
        inputRequests: {
          ...(able.sampling ? { sampled: sample('Hello') } : {}),
          ...(able.elicitation ? { asked: form('Hello', 'name') } : {}),
        },
      })
    }
    case 'test_missing_capability': {
      const able = abilities(ctx)
      if (!able.sampling)
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
      return text('capable')
    }
    default:
      throw new ProtocolError(-32602, `unknown tool ${name}`)
  }
}
