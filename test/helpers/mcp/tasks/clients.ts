/** Wire clients for tasks. */
import { stateless, type StatelessOptions, type WireAnswer, type WireSession } from '../wire.ts'

const tasksExtension = 'io.modelcontextprotocol/tasks'
export const declaringTasks = { extensions: { [tasksExtension]: {} }, elicitation: { form: {} } }
/** Configuration that turns tasks on. */
export const tasksOn = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  extensions: { tasks: { enabled: true, pollInterval: '100ms', ...more } },
})

/** Sends a request of a stateless client that declares the extension. */
export function taskRequest(
  url: string,
  method: string,
  params: Record<string, unknown>,
  options: StatelessOptions = {},
): Promise<WireAnswer> {
  const taskId = params['taskId']
  const name = typeof taskId === 'string' ? { 'mcp-name': taskId } : {}
  return stateless(url, method, params, {
    capabilities: declaringTasks,
    ...options,
    headers: { ...name, ...options.headers },
  })
}

/** Waits until the next poll is allowed, for tasks with an interval of 100 ms. */
export const nextPoll = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 110))

/** Polls a task until its status differs from `working`. Waits 110 ms before each poll. */
export async function pollTask(
  url: string,
  taskId: string,
  options: StatelessOptions = {},
): Promise<Record<string, unknown>> {
  for (let i = 0; i < 100; i++) {
    await nextPoll()
    const { response } = await taskRequest(url, 'tasks/get', { taskId }, options)
    if (!response?.result) throw new Error(`tasks/get: ${JSON.stringify(response)}`)
    if (response.result['status'] !== 'working') return response.result
  }
  throw new Error('the task did not end')
}

/** Like `pollTask`, for a session client. */
export async function pollSessionTask(
  session: WireSession,
  taskId: string,
): Promise<Record<string, unknown>> {
  for (let i = 0; i < 100; i++) {
    await nextPoll()
    const { response } = await session.request('tasks/get', { taskId })
    if (!response?.result) throw new Error(`tasks/get: ${JSON.stringify(response)}`)
    if (response.result['status'] !== 'working') return response.result
  }
  throw new Error('the task did not end')
}
