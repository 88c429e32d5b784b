/** State of one HTTP request that the stages of the virtual server share. */
import type { Era, JsonObject, Message } from '../../mcp/index.ts'
import { Exchange } from '../../net/index.ts'

export const mcpPath = '/mcp'
export const ssePath = '/sse'
export const messagesPath = '/messages'

export class VmcpExchange extends Exchange {
  static override readonly endpoints = [mcpPath, ssePath, messagesPath]
  /** Message of a POST. Set when it is parsed. */
  message: Message | undefined
  params: JsonObject | undefined
  era: Era | undefined
}
