/** State of one HTTP request, shared by the stages of the virtual server. */
import type { Era, JsonObject, Message } from '../../mcp/index.ts'
import { Exchange } from '../../net/index.ts'

export const mcpPath = '/mcp'
export const ssePath = '/sse'
export const messagesPath = '/messages'

export class VmcpExchange extends Exchange {
  static override readonly endpoints = [mcpPath, ssePath, messagesPath]
  /** The message in a POST. Undefined until the body is parsed. */
  message: Message | undefined
  params: JsonObject | undefined
  era: Era | undefined
}
