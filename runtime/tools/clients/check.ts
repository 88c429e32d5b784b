/** Whether an MCP server answers at an address, in words. */
import { shown } from '../../toolkit/clients/index.ts'
import { greet } from '../../toolkit/mcp-client/greeting.ts'

const timeoutMs = 5000

export async function answerOf(url: string): Promise<string> {
  const greeting = await greet(url, timeoutMs)
  switch (greeting.kind) {
    case 'server':
      return `answers as ${greeting.name === undefined ? 'an MCP server' : shown(greeting.name)}`
    case 'login':
      return 'answers, and wants a login'
    case 'other':
      return `answers with status ${greeting.status}, not as an MCP server`
    case 'silent':
      return 'does not answer'
  }
}
