/**
 * Runs the backends of the soak in a separate process. Prints one line of JSON with the address of each name.
 *
 * `steady` runs three permanent backends: `alpha` (session era, hand-written), `beta` (stateless era, on the SDK) and
 * `delta` (like alpha, but slow). `fixture PORT` runs one on the SDK of the session era, with streamable HTTP and the
 * old SSE, which the soak kills and restarts at the same port.
 */
import type { ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { type Fixture, startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import {
  type RawBackend,
  type RawRequest,
  startRawBackend,
  textResult,
} from '../../helpers/mcp/raw-backend.ts'

const TOOLS = ['echo', 'stream', 'progress', 'ask', 'storm', 'large', 'hang']
const LARGE = 'x'.repeat(256 * 1024)
/** Records of the helpers for tests must not grow here. */
const FORGET_MS = 1_000

interface Settings {
  readonly pauseMs: () => number
}

function tool(name: string): string {
  return JSON.stringify({ name, description: `Does ${name}`, inputSchema: { type: 'object' } })
}

/** A backend of the session era with everything that the soak needs, without the cost of an SDK. */
async function startLean({ pauseMs }: Settings): Promise<RawBackend> {
  const asked = new Map<string, (body: string) => void>()
  let nextQuestion = 1
  let extra = false

  async function call(request: RawRequest): Promise<string | undefined> {
    const { params, res } = request
    const args = params['arguments'] as { text?: string } | undefined
    await setTimeout(pauseMs())
    switch (params['name']) {
      case 'stream':
        events(res).end(event(response(request, textResult(args?.text ?? ''))))
        return undefined
      case 'progress':
        return reportProgress(request)
      case 'ask':
        return ask(request)
      case 'storm':
        return storm()
      case 'large':
        return textResult(LARGE)
      case 'hang':
        // Never responds. Releases the response when the client disconnects.
        if (tokenOf(request) !== undefined) reportOnce(events(res), tokenOf(request), 0)
        return undefined
      default:
        return textResult(args?.text ?? '')
    }
  }

  async function reportProgress(request: RawRequest): Promise<undefined> {
    const stream = events(request.res)
    for (const progress of [0, 50, 100]) {
      if (tokenOf(request) !== undefined) reportOnce(stream, tokenOf(request), progress)
      await setTimeout(5)
    }
    stream.end(event(response(request, textResult('done'))))
  }

  function ask(request: RawRequest): undefined {
    const id = `question-${nextQuestion++}`
    const stream = events(request.res)
    asked.set(id, (body) => stream.end(event(response(request, textResult(body)))))
    request.res.once('close', () => asked.delete(id))
    const params = { message: 'who?', requestedSchema: { type: 'object', properties: {} } }
    stream.write(event(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params })))
  }

  /** Adds or removes a tool and announces it twenty times. */
  function storm(): string {
    extra = !extra
    for (let n = 0; n < 20; n++) backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
    return textResult(String(extra))
  }

  const backend = await startRawBackend({
    capabilities: '{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{}}',
    tools: () => [...TOOLS, ...(extra ? ['extra'] : [])].map(tool),
    responses: {
      'tools/call': call,
      'resources/list': () => '{"resources":[{"uri":"lean://note","name":"note"}]}',
      'resources/templates/list': () => '{"resourceTemplates":[]}',
      'resources/read': ({ params }) =>
        JSON.stringify({ contents: [{ uri: params['uri'], text: 'a note' }] }),
      'resources/subscribe': () => '{}',
      'resources/unsubscribe': () => '{}',
      'prompts/list': () => '{"prompts":[{"name":"greet"}]}',
      'prompts/get': () => '{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}',
      'logging/setLevel': () => '{}',
    },
    before(_req, res, body) {
      const id = /"id":"(question-\d+)"/.exec(body)?.[1]
      if (id === undefined || body.includes('"method"')) return false
      asked.get(id)?.(body)
      res.writeHead(202).end()
      return true
    },
  })
  setInterval(() => void backend.requests.splice(0), FORGET_MS)
  return backend
}

function events(res: ServerResponse): ServerResponse {
  return res.writeHead(200, { 'content-type': 'text/event-stream' })
}

function tokenOf({ params }: RawRequest): unknown {
  return (params['_meta'] as { progressToken?: unknown } | undefined)?.progressToken
}

function reportOnce(stream: ServerResponse, progressToken: unknown, progress: number): void {
  const params = { progressToken, progress, total: 100 }
  stream.write(event(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })))
}

function event(message: string): string {
  return `event: message\ndata: ${message}\n\n`
}

function response({ id }: RawRequest, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

function forgetful(fixture: Fixture): Fixture {
  setInterval(() => void fixture.state.requests.splice(0), FORGET_MS)
  return fixture
}

const [kind, port = '0'] = process.argv.slice(2)
if (kind === 'steady') {
  const [alpha, delta, beta] = await Promise.all([
    startLean({ pauseMs: () => 0 }),
    startLean({ pauseMs: () => 50 + Math.random() * 700 }),
    startFixture({ era: 'stateless' }),
  ])
  forgetful(beta)
  process.stdout.write(`${JSON.stringify({ alpha: alpha.url, beta: beta.url, delta: delta.url })}\n`)
} else {
  const { url, sseUrl } = forgetful(await startFixture({ era: 'session', port: Number(port) }))
  process.stdout.write(`${JSON.stringify({ url, sseUrl })}\n`)
}
