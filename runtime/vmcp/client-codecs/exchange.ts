/** What the stages of the virtual server know about one HTTP request. */
import { type Era, headerName, type JsonObject, type Message, single } from '../../mcp/index.ts'
import { Exchange } from '../../net/index.ts'

export class VmcpExchange extends Exchange {
  /** The message of a POST, once parsed. */
  message: Message | undefined
  params: JsonObject | undefined
  era: Era | undefined

  header(name: keyof typeof headerName): string | undefined {
    return single(this.req.headers[headerName[name]])
  }
}
