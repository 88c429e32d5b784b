/** Clients of both eras that are the targets of a rug pull. They record all responses. */
import { openSession, stateless, type WireAnswer } from '../mcp/wire.ts'

export interface Described {
  readonly name: string
  readonly description?: string
}

export interface RuggedClient {
  readonly era: 'session' | 'stateless'
  request(method: string, params?: Record<string, unknown>): Promise<WireAnswer>
  tools(): Promise<readonly Described[]>
  /** Default argument: `path`. */
  call(name: string, args?: Record<string, unknown>): Promise<WireAnswer>
  /** Tools that tool search finds. */
  found(description: string): Promise<readonly Described[]>
  /** Instructions of the server, from `initialize` or discovery. */
  instructions(): Promise<unknown>
}

/** Adds the text of every response to `answers`. */
export async function ruggedClients(
  url: string,
  answers: string[],
  { headers = {}, capabilities = {} }: { headers?: Record<string, string>; capabilities?: object } = {},
): Promise<readonly RuggedClient[]> {
  const session = await openSession(url, { headers, capabilities })
  const client = (era: RuggedClient['era'], request: RuggedClient['request']): RuggedClient => {
    const noted: RuggedClient['request'] = async (method, params) => {
      const answer = await request(method, params)
      answers.push(answer.text)
      return answer
    }
    const call: RuggedClient['call'] = (name, args = { path: 'x' }) =>
      noted('tools/call', { name, arguments: args })
    return {
      era,
      request: noted,
      call,
      tools: async () => listIn(await noted('tools/list'), 'tools'),
      async found(description) {
        const { response } = await call('find_tool', { tool_description: description })
        const { tools } = (response?.result?.['structuredContent'] ?? {}) as { tools?: readonly Described[] }
        return tools ?? []
      },
      async instructions() {
        if (era === 'session') return session.initialized.result?.['instructions']
        return (await noted('server/discover')).response?.result?.['instructions']
      },
    }
  }
  return [
    client('session', (method, params) => session.request(method, params)),
    client('stateless', (method, params) => stateless(url, method, params, { headers, capabilities })),
  ]
}

export function listIn({ response }: WireAnswer, member: string): readonly Described[] {
  return (response?.result?.[member] ?? []) as readonly Described[]
}

/** Undefined: the tool is not listed. */
export function describedAs(tools: readonly Described[], name: string): string | undefined {
  const found = tools.find((tool) => tool.name === name)
  return found && (found.description ?? '')
}

/** The backend that answered a call, directly or through other tools. Undefined: no backend did. */
export function reachedBy({ text, response }: WireAnswer): string | undefined {
  if (response?.error || response?.result?.['isError'] === true) return undefined
  return /reached:([\w-]+)/.exec(text)?.[1]
}

/** `result`, `error <code>`, or `failed`. */
export function resultOf({ response, status }: WireAnswer): string {
  if (!response) return `status ${status}`
  if (response.error) return `error ${response.error.code}`
  return response.result?.['isError'] === true ? 'failed' : 'result'
}
