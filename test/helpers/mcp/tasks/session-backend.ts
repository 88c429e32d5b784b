/** A session-era backend with tasks, on the SDK's server and task store. Each session shares the task store. */
import { randomUUID } from 'node:crypto'
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore,
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { type CallToolResult, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { startJsonServer } from '../../vmcp/json-server.ts'

export interface SessionTaskBackend {
  readonly url: string
  /** Methods of all requests, in order. */
  readonly methods: string[]
  close(): Promise<void>
}

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

export async function startSessionTaskBackend(): Promise<SessionTaskBackend> {
  const taskStore = new InMemoryTaskStore()
  const taskMessageQueue = new InMemoryTaskMessageQueue()
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const methods: string[] = []

  function makeServer(): McpServer {
    const server = new McpServer(
      { name: 'tasks', version: '1' },
      {
        capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
        taskStore,
        taskMessageQueue,
      },
    )
    const register = (
      name: string,
      taskSupport: 'required' | 'optional',
      work: (ms: number, ask: () => Promise<string>) => Promise<CallToolResult>,
    ): void => {
      server.experimental.tasks.registerToolTask(
        name,
        { inputSchema: { ms: z.number().optional() }, execution: { taskSupport } },
        {
          async createTask({ ms = 0 }, extra) {
            const task = await extra.taskStore.createTask({
              ttl: extra.taskRequestedTtl ?? null,
              pollInterval: 100,
            })
            const { taskId } = task
            const ask = async (): Promise<string> => {
              await extra.taskStore.updateTaskStatus(taskId, 'input_required')
              const answer = await server.server.request(
                {
                  method: 'elicitation/create',
                  params: {
                    message: 'Which color?',
                    requestedSchema: { type: 'object', properties: { color: { type: 'string' } } },
                  },
                },
                ElicitResultSchema,
                { relatedTask: { taskId } },
              )
              await extra.taskStore.updateTaskStatus(taskId, 'working')
              return JSON.stringify(answer.content)
            }
            // The task may have been cancelled in the meantime.
            work(ms, ask)
              .then((result) =>
                extra.taskStore.storeTaskResult(taskId, result.isError ? 'failed' : 'completed', result),
              )
              .catch(() => {})
            return { task }
          },
          getTask: async (_args, extra) => extra.taskStore.getTask(extra.taskId),
          getTaskResult: async (_args, extra) =>
            (await extra.taskStore.getTaskResult(extra.taskId)) as CallToolResult,
        },
      )
    }
    const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())
    register('slow', 'required', async (ms) => {
      await wait(ms)
      return text(`slept ${ms}`)
    })
    register('maybe', 'optional', async () => text('done'))
    register('broken', 'required', async () => ({ ...text('no'), isError: true }))
    register('ask', 'required', async (_ms, ask) => text(`got ${await ask()}`))
    server.registerTool('plain', {}, async () => text('plain'))
    return server
  }

  const http = await startJsonServer((body, req, res) => {
    void (async () => {
      const parsed: unknown = body === '' ? undefined : JSON.parse(body)
      const method = (parsed as { method?: string } | undefined)?.method
      if (method !== undefined) methods.push(method)
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
    methods,
    async close() {
      await Promise.all([...transports.values()].map((transport) => transport.close()))
      taskStore.cleanup()
      await http.close()
    },
  }
}
