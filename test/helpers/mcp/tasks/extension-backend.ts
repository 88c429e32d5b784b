/** A hand-written stateless backend with the tasks extension, because no SDK implements the server side. */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { sendJson, startJsonServer } from '../../vmcp/json-server.ts'

export interface SentRequest {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly headers: IncomingHttpHeaders
}

export interface ExtensionTask {
  readonly tool: string
  members: Record<string, unknown>
  readonly responses: Record<string, unknown>[]
}

export interface ExtensionBackend {
  readonly url: string
  readonly requests: SentRequest[]
  readonly tasks: Map<string, ExtensionTask>
  /** Ends a task. */
  complete(taskId: string, result: unknown): void
  close(): Promise<void>
}

export interface ExtensionBackendOptions {
  /** Members of each created task. */
  readonly created?: Record<string, unknown>
  /** `_meta` of each tool. */
  readonly toolMeta?: Record<string, unknown>
  /** Ends tasks after this time in milliseconds. */
  readonly completeAfterMs?: number
  /** Rejects cancellations with an error. */
  readonly rejectsCancel?: boolean
}

const extension = 'io.modelcontextprotocol/tasks'
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'
const tools = ['flex', 'only', 'ask', 'sync'].map((name) => ({ name, inputSchema: { type: 'object' } }))
const question = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Which color?', requestedSchema: { type: 'object', properties: {} } },
}

export async function startExtensionBackend(
  options: ExtensionBackendOptions = {},
): Promise<ExtensionBackend> {
  const requests: SentRequest[] = []
  const tasks = new Map<string, ExtensionTask>()
  const now = (): string => new Date().toISOString()
  const complete = (taskId: string, result: unknown): void => {
    const task = tasks.get(taskId)
    if (task) task.members = { ...task.members, status: 'completed', result, inputRequests: undefined }
  }

  function call({ params }: SentRequest, declared: boolean): unknown {
    const tool = String(params['name'])
    if (tool === 'sync' || (tool === 'flex' && !declared))
      return { resultType: 'complete', content: [{ type: 'text', text: 'at once' }] }
    if (!declared)
      throw {
        code: -32021,
        message: 'missing',
        data: { requiredCapabilities: { extensions: { [extension]: {} } } },
      }
    const taskId = randomUUID()
    const members: Record<string, unknown> = {
      ...{
        taskId,
        status: 'working',
        createdAt: now(),
        lastUpdatedAt: now(),
        ttlMs: null,
        pollIntervalMs: 100,
      },
      ...options.created,
      ...(tool === 'ask' && { status: 'input_required', inputRequests: { color: question } }),
    }
    tasks.set(taskId, { tool, members, responses: [] })
    if (options.completeAfterMs !== undefined && tool !== 'ask')
      setTimeout(
        () => complete(taskId, { content: [{ type: 'text', text: 'finished' }] }),
        options.completeAfterMs,
      )
    const { inputRequests: _, ...created } = members
    return { resultType: 'task', ...created, vendor: { kept: 12345678901234567890n.toString() } }
  }

  function respond(request: SentRequest): unknown {
    const { method, params } = request
    const meta = (params['_meta'] ?? {}) as Record<string, { extensions?: Record<string, unknown> }>
    const declared = meta[capabilitiesKey]?.extensions?.[extension] !== undefined
    if (method === 'server/discover')
      return {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {}, extensions: { [extension]: {} } },
      }
    if (method === 'tools/list')
      return { resultType: 'complete', tools: tools.map((tool) => ({ ...tool, _meta: options.toolMeta })) }
    if (method === 'tools/call') return call(request, declared)
    if (!declared) throw { code: -32021, message: 'undeclared' }
    const task = tasks.get(String(params['taskId']))
    if (request.headers['mcp-name'] !== params['taskId']) throw { code: -32020, message: 'Mcp-Name' }
    if (!task) throw { code: -32602, message: 'Task not found: secret detail' }
    if (method === 'tasks/get') return { resultType: 'complete', ...task.members }
    if (method === 'tasks/cancel') {
      if (options.rejectsCancel) throw { code: -32603, message: 'not now' }
      task.members = { ...task.members, status: 'cancelled', inputRequests: undefined }
      return { resultType: 'complete' }
    }
    task.responses.push(params['inputResponses'] as Record<string, unknown>)
    complete(String(params['taskId']), {
      content: [{ type: 'text', text: `got ${JSON.stringify(params['inputResponses'])}` }],
    })
    return { resultType: 'complete' }
  }

  const server = await startJsonServer((body, req, res) => {
    if (body === '') {
      res.writeHead(405).end()
      return
    }
    const { id, method, params = {} } = JSON.parse(body)
    const request = { method, params, headers: req.headers }
    requests.push(request)
    try {
      sendJson(res, { jsonrpc: '2.0', id, result: respond(request) })
    } catch (error) {
      sendJson(res, { jsonrpc: '2.0', id, error }, 400)
    }
  })
  return { url: `${server.origin}/mcp`, requests, tasks, complete, close: () => server.close() }
}
