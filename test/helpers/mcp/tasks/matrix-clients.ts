/** Wire clients of both eras with the same interface, for tables of eras. They accept each question of the user. */
import { openSession, stateless, statelessRequest, type WireStream } from '../wire.ts'
import { declaringTasks, pollSessionTask, pollTask, taskRequest } from './clients.ts'

export interface MatrixClient {
  /** Calls a tool as a task. Resolves with the task id. */
  create(name: string, args?: object): Promise<string>
  /** Waits for the end of a task. Resolves with the result or the error as JSON text. */
  settle(taskId: string): Promise<string>
  /** Cancels a task. Resolves with the status that a later read returns. */
  cancel(taskId: string): Promise<unknown>
  /** Calls a tool without a task. Resolves with the result or the error as JSON text. */
  call(name: string, args?: object): Promise<string>
  /**
   * Calls a tool without a task, and closes the connection when `reached` resolves. Undefined for sessions, because a
   * closed connection does not cancel their calls.
   */
  readonly abandon?: (name: string, args: object, reached: () => Promise<void>) => Promise<void>
}

const ui = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
const accepted = { action: 'accept', content: { name: 'Ada', confirm: true } }
const elicitation = { form: {} }

export async function connectSessionClient(url: string): Promise<MatrixClient> {
  const session = await openSession(url, { capabilities: { elicitation, extensions: ui } })
  async function finish(stream: WireStream): Promise<string> {
    for (;;) {
      const message = await stream.next(({ method, result, error }) =>
        Boolean(method === 'elicitation/create' || result || error),
      )
      if (message.method === undefined) return JSON.stringify(message.result ?? message.error)
      await session.response(message.id, accepted)
    }
  }
  return {
    async create(name, args = {}) {
      const { response } = await session.request('tools/call', { name, arguments: args, task: {} })
      const { taskId } = Object(response?.result?.['task'])
      if (taskId === undefined) throw new Error(`${name}: ${JSON.stringify(response)}`)
      return String(taskId)
    },
    settle: async (taskId) => finish(await session.open('tasks/result', { taskId })),
    async cancel(taskId) {
      await session.request('tasks/cancel', { taskId })
      return (await pollSessionTask(session, taskId))['status']
    },
    call: async (name, args = {}) => finish(await session.open('tools/call', { name, arguments: args })),
  }
}

export function connectStatelessClient(url: string): Promise<MatrixClient> {
  const withTasks = { ...declaringTasks, extensions: { ...declaringTasks.extensions, ...ui } }
  const options = { capabilities: withTasks }
  const plain = { capabilities: { elicitation, extensions: ui } }
  const answersTo = (requests: unknown) =>
    Object.fromEntries(Object.keys(Object(requests)).map((key) => [key, accepted]))
  return Promise.resolve({
    async create(name, args = {}) {
      const { response } = await taskRequest(url, 'tools/call', { name, arguments: args }, options)
      if (response?.result?.['resultType'] !== 'task') throw new Error(`${name}: ${JSON.stringify(response)}`)
      return String(response.result['taskId'])
    },
    async settle(taskId) {
      for (;;) {
        const task = await pollTask(url, taskId, options)
        if (task['status'] !== 'input_required') return JSON.stringify(task['result'] ?? task['error'])
        const inputResponses = answersTo(task['inputRequests'])
        await taskRequest(url, 'tasks/update', { taskId, inputResponses }, options)
      }
    },
    async cancel(taskId) {
      await taskRequest(url, 'tasks/cancel', { taskId }, options)
      return (await pollTask(url, taskId, options))['status']
    },
    async call(name, args = {}) {
      for (let params: Record<string, unknown> = { name, arguments: args }; ; ) {
        const { response } = await stateless(url, 'tools/call', params, plain)
        const result = response?.result
        if (result?.['resultType'] !== 'input_required') return JSON.stringify(result ?? response?.error)
        const { requestState } = result
        params = { ...params, requestState, inputResponses: answersTo(result['inputRequests']) }
      }
    },
    async abandon(name, args, reached) {
      const { body, headers } = statelessRequest('tools/call', { name, arguments: args }, plain)
      const accept = 'application/json, text/event-stream'
      const all = { 'content-type': 'application/json', accept, ...headers }
      const controller = new AbortController()
      const { signal } = controller
      const called = fetch(url, { method: 'POST', body, headers: all, signal }).catch(() => {})
      await reached()
      controller.abort()
      await called
    },
  })
}
