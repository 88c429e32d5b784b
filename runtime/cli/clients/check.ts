/** Whether an MCP server answers at an address: one `initialize`, in words. */
import { eventStreamType, headerName, jsonType, sessionVersions } from '../../mcp/index.ts'
import { makeFetch } from '../../net/index.ts'

const timeoutMs = 5000

export async function answerOf(url: string): Promise<string> {
  const fetch = makeFetch({ allowHttp: true, timeoutMs })
  try {
    const headers = { 'Content-Type': jsonType, Accept: `${jsonType}, ${eventStreamType}` }
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(initialize) })
    if (response.status === 401) return 'answers, and wants a login'
    const text = await response.text()
    const name = response.ok ? serverName(text) : undefined
    const session = response.headers.get(headerName.sessionId)
    if (session !== null) await fetch(url, { method: 'DELETE', headers: { [headerName.sessionId]: session } })
    return name === undefined
      ? `answers with status ${response.status}, not as an MCP server`
      : `answers as ${name}`
  } catch {
    return 'does not answer'
  } finally {
    await fetch.close()
  }
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: sessionVersions[0],
    capabilities: {},
    clientInfo: { name: 'gatehouse-client-check', version: '1' },
  },
}

/** From a JSON response, or from an event stream of one. */
function serverName(text: string): string | undefined {
  const json = /^data: ?(\{.*)$/m.exec(text)?.[1] ?? text
  try {
    const { result } = JSON.parse(json) as { result?: { serverInfo?: { name?: unknown } } }
    return typeof result?.serverInfo?.name === 'string' ? result.serverInfo.name : undefined
  } catch {
    return undefined
  }
}
