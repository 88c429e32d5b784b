/** Bridges to stdio servers, and a sampling flow that both transports are tested with. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import { silentLog } from '../../../../../runtime/net/index.ts'
import { type StdioBridge, startStdioBridge } from '../../../../../runtime/proxy/index.ts'
import type { ServerBridgeOptions } from '../../../../../runtime/proxy/stdio-server/bridge.ts'

export const program = 'test/helpers/mcp/fixture-server/stdio-program.ts'

export const everything = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'

export const askable = { elicitation: {}, sampling: {}, roots: {} }

export async function bridgeTo(
  t: Test,
  command: readonly string[],
  more: Partial<ServerBridgeOptions> = {},
): Promise<StdioBridge> {
  const bridge = await startStdioBridge({
    command: [process.execPath, ...command],
    env: { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' },
    cwd: process.cwd(),
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    ...more,
  })
  t.teardown(() => bridge.close())
  return bridge
}

/** Calls a tool that asks the client for a sampling message, and checks that the result contains the client's response. */
export async function checkSampling(t: Test, client: Client): Promise<void> {
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: 'none',
    role: 'assistant' as const,
    content: { type: 'text' as const, text: 'sampled words' },
  }))
  const response = await client.callTool({
    name: 'trigger-sampling-request',
    arguments: { prompt: 'hi', maxTokens: 5 },
  })
  t.match(JSON.stringify(response.content), 'sampled words')
}
