/**
 * The tools that the `tasks-*` scenarios of the official suite call. Both test servers, one for each era, offer them.
 * Source: descriptions of the scenarios, "Required server fixtures".
 */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'

/** Asks the user. Resolves with the user's answer. */
export type AskUser = (key: string, message: string) => Promise<{ readonly content?: unknown }>

export interface TaskTool {
  readonly support: 'required' | 'optional'
  /** Asks for a name before the task exists. */
  readonly asksFirst?: boolean
  /** Rejects for tools that fail with a protocol error. `name` is the answer to the first question. */
  work(args: Record<string, unknown>, ask: AskUser, name?: string): Promise<CallToolResult>
}

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

const wait = (seconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, seconds * 1_000).unref())

export const questionSchema = {
  type: 'object',
  properties: { name: { type: 'string' }, confirm: { type: 'boolean' } },
} as const

/** The only tool that never becomes a task. */
export const greet = (args: Record<string, unknown>): CallToolResult =>
  text(`Hello, ${String(args['name'])}!`)

export const taskTools: Readonly<Record<string, TaskTool>> = {
  slow_compute: {
    support: 'optional',
    async work({ seconds = 0, label }) {
      await wait(Number(seconds))
      return text(`computed ${String(label)}`)
    },
  },
  /** Not part of the scenarios. */
  required_compute: {
    support: 'required',
    async work({ seconds = 0, label }) {
      await wait(Number(seconds))
      return text(`computed ${String(label)}`)
    },
  },
  failing_job: {
    support: 'required',
    async work() {
      await wait(1)
      return { ...text('the job failed'), isError: true }
    },
  },
  protocol_error_job: { support: 'required', work: () => Promise.reject(new Error('the job crashed')) },
  confirm_delete: {
    support: 'required',
    async work({ filename }, ask) {
      await ask('confirm', `Delete ${String(filename)}?`)
      return text(`deleted ${String(filename)}`)
    },
  },
  multi_input: {
    support: 'required',
    async work(_args, ask) {
      const answers = await Promise.all([ask('first', 'First?'), ask('second', 'Second?')])
      return text(JSON.stringify(answers))
    },
  },
  test_tool_with_task: {
    support: 'required',
    asksFirst: true,
    work: async (_args, _ask, name) => text(`Hello, ${String(name)}`),
  },
}
