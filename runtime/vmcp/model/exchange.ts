/** State of one HTTP request that the stages of the virtual server share. */
import { type Era, headerName, type JsonObject, type Message } from '../../mcp/index.ts'
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

  /** Returns the only value of a header. A repeated header is treated as absent. */
  header(name: keyof typeof headerName): string | undefined {
    const value = this.req.headers[headerName[name]]
    return typeof value === 'string' ? value : undefined
  }
}
