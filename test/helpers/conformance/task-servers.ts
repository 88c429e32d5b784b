/** Test servers with the tools of the suite's `tasks-*` scenarios: one server for each era of tasks. */
import { randomUUID } from 'node:crypto'
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore,
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { ElicitResultSchema, ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { sendJson, startJsonServer } from '../vmcp/json-server.ts'
import { greet, questionSchema, type TaskTool, taskTools } from './task-tools.ts'

export interface TaskServer {
  readonly url: string
  /** Returns the number of tasks. */
  readonly created: () => number
  /** Returns the number of cancelled tasks. */
  readonly cancelled: () => number
  close(): Promise<void>
}

const extension = 'io.modelcontextprotocol/tasks'
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'
const question = (message: string) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: questionSchema },
})
const inputSchema = {
  type: 'object',
  properties: { seconds: { type: 'number' }, label: { type: 'string' }, filename: { type: 'string' } },
}
const greetSchema = { type: 'object', properties: { name: { type: 'string' } } }

type Fields = Record<string, unknown>

/** A task of the extension, with the open questions. */
class ExtensionTask {
  readonly #answers = new Map<string, (answer: Fields) => void>()
  readonly #questions: Fields = {}
  #members: Fields

  constructor(taskId: string, tool: TaskTool, args: Fields, name: string | undefined) {
    const at = new Date().toISOString()
    this.#members = { taskId, createdAt: at, lastUpdatedAt: at, ttlMs: 600_000, pollIntervalMs: 100 }
    this.#change({ status: 'working' })
    tool
      .work(args, (key, message) => this.#ask(key, message), name)
      .then(
        (result) => this.#end({ status: 'completed', result }),
        (error: Error) => this.#end({ status: 'failed', error: { code: -32603, message: error.message } }),
      )
  }

  get created(): Fields {
    return { resultType: 'task', ...this.#members, status: 'working', result: undefined, error: undefined }
  }

  get detailed(): Fields {
    const isWaiting = this.#members['status'] === 'input_required'
    return { ...this.#members, ...(isWaiting && { inputRequests: this.#questions }) }
  }

  #change(members: Fields): void {
    this.#members = { ...this.#members, ...members, lastUpdatedAt: new Date().toISOString() }
  }

  #end(members: Fields): void {
    if (this.#members['status'] !== 'cancelled') this.#change(members)
  }

  #ask(key: string, message: string): Promise<Fields> {
    this.#questions[key] = question(message)
    this.#change({ status: 'input_required' })
    return new Promise((resolve) => this.#answers.set(key, resolve))
  }

  update(responses: Fields): void {
    for (const [key, answer] of Object.entries(responses)) {
      const resolve = this.#answers.get(key)
      if (!resolve) continue
      this.#answers.delete(key)
      delete this.#questions[key]
      if (this.#answers.size === 0) this.#change({ status: 'working' })
      resolve(Object(answer))
    }
  }

  get isCancelled(): boolean {
    return this.#members['status'] === 'cancelled'
  }

  cancel(): void {
    if (!['completed', 'failed'].includes(String(this.#members['status'])))
      this.#change({ status: 'cancelled' })
  }
}

/** Starts a server of 2026-07-28 with the tasks extension. */
export async function startExtensionTaskServer(): Promise<TaskServer> {
  const tasks = new Map<string, ExtensionTask>()

  async function call(params: Fields, isDeclared: boolean): Promise<Fields> {
    const name = String(params['name'])
    const args = Object(params['arguments'])
    if (name === 'greet') return { ...greet(args) }
    const tool = taskTools[name]
    if (!tool) throw { code: -32602, message: 'unknown tool' }
    if (!isDeclared) {
      if (tool.support === 'optional') return { ...(await tool.work(args, () => Promise.resolve({}))) }
      const requiredCapabilities = { extensions: { [extension]: {} } }
      throw { code: -32021, message: 'the client must support tasks', data: { requiredCapabilities } }
    }
    const answer = Object(Object(params['inputResponses'])['user_name'])
    if (tool.asksFirst && params['inputResponses'] === undefined) {
      const inputRequests = { user_name: question('Your name?') }
      return { resultType: 'input_required', inputRequests, requestState: 'asked' }
    }
    const taskId = randomUUID()
    const task = new ExtensionTask(taskId, tool, args, Object(answer['content'])['name'])
    tasks.set(taskId, task)
    return task.created
  }

  async function respond(method: string, params: Fields): Promise<Fields> {
    const declared = Object(Object(Object(params['_meta'])[capabilitiesKey])['extensions'])
    const isDeclared = extension in declared
    if (method === 'server/discover')
      return {
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {}, extensions: { [extension]: {} } },
      }
    if (method === 'tools/list') {
      const tools = Object.keys(taskTools).map((name) => ({ name, inputSchema }))
      return { tools: [{ name: 'greet', inputSchema: greetSchema }, ...tools] }
    }
    if (method === 'tools/call') return call(params, isDeclared)
    if (!isDeclared) throw { code: -32021, message: 'undeclared' }
    const task = tasks.get(String(params['taskId']))
    if (!task) throw { code: -32602, message: 'unknown task' }
    if (method === 'tasks/get') return task.detailed
    if (method === 'tasks/update') task.update(Object(params['inputResponses']))
    else if (method === 'tasks/cancel') task.cancel()
    else throw { code: -32601, message: 'unknown method' }
    return {}
  }

  const server = await startJsonServer((body, _req, res) => {
    if (body === '') {
      res.writeHead(405).end()
      return
    }
    const { id, method, params = {} } = JSON.parse(body)
    respond(method, params).then(
      (result) => sendJson(res, { jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }),
      (error: unknown) => sendJson(res, { jsonrpc: '2.0', id, error }, 400),
    )
  })
  return {
    url: `${server.origin}/mcp`,
    created: () => tasks.size,
    cancelled: () => [...tasks.values()].filter(({ isCancelled }) => isCancelled).length,
    close: () => server.close(),
  }
}

/** A task store in which tasks may fail with a protocol error. */
class FailingTaskStore extends InMemoryTaskStore {
  readonly errors = new Map<string, McpError>()
  created = 0
  cancelled = 0

  override createTask(...options: Parameters<InMemoryTaskStore['createTask']>) {
    this.created++
    return super.createTask(...options)
  }

  override async updateTaskStatus(
    ...[taskId, status, ...rest]: Parameters<InMemoryTaskStore['updateTaskStatus']>
  ): Promise<void> {
    await super.updateTaskStatus(taskId, status, ...rest)
    if (status === 'cancelled') this.cancelled++
  }

  override async getTaskResult(taskId: string, sessionId?: string) {
    const error = this.errors.get(taskId)
    if (error) throw error
    return super.getTaskResult(taskId, sessionId)
  }
}

/** Starts a server of 2025-11-25 with tasks, on the SDK's server. */
export async function startSessionTaskServer(): Promise<TaskServer> {
  const taskStore = new FailingTaskStore()
  const taskMessageQueue = new InMemoryTaskMessageQueue()
  const transports = new Map<string, StreamableHTTPServerTransport>()

  function makeServer(): McpServer {
    const capabilities = { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } }
    const server = new McpServer(
      { name: 'tasks', version: '1' },
      { capabilities, taskStore, taskMessageQueue },
    )
    server.registerTool('greet', { inputSchema: { name: z.string().optional() } }, async (args) =>
      greet(args),
    )
    for (const [name, tool] of Object.entries(taskTools)) register(server, name, tool)
    return server
  }

  function register(server: McpServer, name: string, tool: TaskTool): void {
    server.experimental.tasks.registerToolTask(
      name,
      {
        inputSchema: {
          seconds: z.number().optional(),
          label: z.string().optional(),
          filename: z.string().optional(),
        },
        execution: { taskSupport: tool.support },
      },
      {
        async createTask(args, extra) {
          const asked = tool.asksFirst
            ? await extra.sendRequest(question('Your name?') as never, ElicitResultSchema)
            : undefined
          const task = await extra.taskStore.createTask({ ttl: 600_000, pollInterval: 100 })
          const { taskId } = task
          let open = 0
          const ask = async (_key: string, message: string) => {
            if (open++ === 0) await extra.taskStore.updateTaskStatus(taskId, 'input_required')
            const options = { relatedTask: { taskId } }
            const answer = await server.server.request(question(message), ElicitResultSchema, options)
            if (--open === 0) await extra.taskStore.updateTaskStatus(taskId, 'working')
            return answer
          }
          tool
            .work(args, ask, String(asked?.content?.['name']))
            .catch((error: Error) => {
              taskStore.errors.set(taskId, new McpError(ErrorCode.InternalError, error.message))
              return { content: [], isError: true }
            })
            .then((result) =>
              extra.taskStore.storeTaskResult(taskId, result.isError ? 'failed' : 'completed', result),
            )
            // The task may have been cancelled in the meantime.
            .catch(() => {})
          return { task }
        },
        getTask: async (_args, extra) => extra.taskStore.getTask(extra.taskId),
        getTaskResult: async (_args, extra) => (await extra.taskStore.getTaskResult(extra.taskId)) as never,
      },
    )
  }

  const http = await startJsonServer((body, req, res) => {
    void (async () => {
      const parsed: unknown = body === '' ? undefined : JSON.parse(body)
      const id = req.headers['mcp-session-id']
      const known = typeof id === 'string' ? transports.get(id) : undefined
      if (known) return known.handleRequest(req, res, parsed)
      const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (opened) => void transports.set(opened, transport),
      })
      await makeServer().connect(transport)
      return transport.handleRequest(req, res, parsed)
    })()
  })
  return {
    url: `${http.origin}/mcp`,
    created: () => taskStore.created,
    cancelled: () => taskStore.cancelled,
    async close() {
      await Promise.all([...transports.values()].map((transport) => transport.close()))
      taskStore.cleanup()
      await http.close()
    },
  }
}
