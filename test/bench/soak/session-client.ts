/**
 * A client of the session era that behaves like a real one: it opens a session, perhaps a GET stream, works for a
 * while, and ends or abandons the session.
 */
import { setTimeout } from 'node:timers/promises'
import {
  openSession,
  type RpcMessage,
  stream,
  type WireSession,
  type WireStream,
} from '../../helpers/mcp/wire.ts'
import { fromShaky, inTime, pick, requireText, resultOf, toolText, uniqueText, weighted } from './checks.ts'
import { Unexpected } from './ledger.ts'
import type { Soak } from './types.ts'

type Work = (soak: Soak, session: WireSession) => Promise<'due' | void>

function call(session: WireSession, name: string, args: unknown, meta?: unknown) {
  return inTime(session.request('tools/call', { name, arguments: args, ...(meta ? { _meta: meta } : {}) }))
}

function isResponse(message: RpcMessage): boolean {
  return message.result !== undefined || message.error !== undefined
}

async function echo(session: WireSession, tool: string): Promise<void> {
  const text = uniqueText()
  const wanted = tool.startsWith('beta') ? JSON.stringify({ text }) : text
  requireText(await call(session, tool, { text }), wanted)
}

async function shaky(soak: Soak, session: WireSession, backend: 'gamma' | 'epsilon'): Promise<'due' | void> {
  const text = uniqueText()
  const before = soak.shaky(backend)
  const response = await call(session, `${backend}_echo`, { text })
  return fromShaky(response, JSON.stringify({ text }), before || soak.shaky(backend))
}

async function list(_soak: Soak, session: WireSession): Promise<void> {
  const { tools } = resultOf(await inTime(session.request('tools/list'))) as { tools: { name: string }[] }
  for (const name of ['alpha_echo', 'beta_echo', 'delta_echo'])
    if (!tools.some((tool) => tool.name === name))
      throw new Unexpected(`${name} is missing among ${tools.length} tools, session ${session.id}`)
}

/** Progress must arrive before the result, with the client's own token. */
async function progress(_soak: Soak, session: WireSession): Promise<void> {
  const progressToken = uniqueText()
  const tool = pick(['alpha_progress', 'beta_test_tool_with_progress'])
  const { messages, response } = await call(session, tool, {}, { progressToken })
  if (toolText(response) !== 'done') throw new Unexpected('progress: not done')
  const heard = messages.filter(
    ({ method, params }) =>
      method === 'notifications/progress' && params?.['progressToken'] === progressToken,
  )
  if (heard.length !== 3) throw new Unexpected(`${heard.length} of 3 progress messages`)
}

/** The tool sends a request to the client. The client usually responds, and sometimes disconnects. */
async function question(_soak: Soak, session: WireSession): Promise<void> {
  const stream = await inTime(session.open('tools/call', { name: 'alpha_ask', arguments: {} }))
  try {
    const asked = await inTime(stream.next(({ method }) => method === 'elicitation/create'))
    if (Math.random() < 0.25) return
    const name = uniqueText()
    await inTime(session.response(asked.id, { action: 'accept', content: { name } }))
    const text = toolText(await inTime(stream.next(isResponse)))
    if (!text.includes(name)) throw new Unexpected('the response did not reach the tool')
  } finally {
    stream.close()
  }
}

/** Disconnects while the call runs. */
async function hangUp(_soak: Soak, session: WireSession): Promise<void> {
  const abort = new AbortController()
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: uniqueText(),
    method: 'tools/call',
    params: { name: pick(['delta_echo', 'alpha_hang']), arguments: {} },
  })
  const headers = {
    ...session.headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  const sent = fetch(session.url, { method: 'POST', headers, body, signal: abort.signal })
    .then((response) => response.arrayBuffer())
    .catch(() => {})
  await setTimeout(10 + Math.random() * 100)
  abort.abort()
  await sent
}

/** Cancels with a notification once the call runs. The request must end without a result. */
async function cancel(_soak: Soak, session: WireSession): Promise<void> {
  const id = uniqueText()
  const params = { name: 'alpha_hang', arguments: {}, _meta: { progressToken: id } }
  const running = await inTime(
    stream(session.url, {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }),
      headers: session.headers,
    }),
  )
  try {
    await inTime(running.next(({ method }) => method === 'notifications/progress'))
    await inTime(session.notify('notifications/cancelled', { requestId: id }))
    await inTime(running.ended)
    const response = running.pending.find(isResponse)
    if (response) throw new Unexpected(`a cancelled request was answered: ${JSON.stringify(response)}`)
  } finally {
    running.close()
  }
}

async function large(_soak: Soak, session: WireSession): Promise<void> {
  const response = await call(session, 'alpha_large', {})
  resultOf(response)
  if (toolText(response.response).length !== 256 * 1024) throw new Unexpected('a large result was cut')
}

/** Every call has a deadline, and returns an error after it. */
async function deadline(_soak: Soak, session: WireSession): Promise<'due'> {
  const response = await call(session, 'alpha_hang', {})
  if (resultOf(response)['isError'] !== true) throw new Unexpected('a tool that hangs was answered')
  return 'due'
}

async function reads(_soak: Soak, session: WireSession): Promise<void> {
  const uri = pick(['lean://note', 'test://static-text', 'test://template/7/data'])
  resultOf(await inTime(session.request('resources/read', { uri })))
}

async function lists(_soak: Soak, session: WireSession): Promise<void> {
  const methods = ['resources/list', 'resources/templates/list', 'prompts/list']
  resultOf(await inTime(session.request(pick(methods))))
}

async function prompt(_soak: Soak, session: WireSession): Promise<void> {
  const name = pick(['alpha_greet', 'beta_test_simple_prompt'])
  resultOf(await inTime(session.request('prompts/get', { name })))
}

async function subscribe(_soak: Soak, session: WireSession): Promise<void> {
  const uri = pick(['lean://note', 'test://watched-resource'])
  resultOf(await inTime(session.request('resources/subscribe', { uri })))
  if (Math.random() < 0.5) resultOf(await inTime(session.request('resources/unsubscribe', { uri })))
}

async function small(_soak: Soak, session: WireSession): Promise<void> {
  const level = pick(['debug', 'info', 'error'])
  resultOf(
    await inTime(
      Math.random() < 0.7 ? session.request('ping') : session.request('logging/setLevel', { level }),
    ),
  )
}

const works: readonly (readonly [number, readonly [string, Work]])[] = [
  [26, ['call, JSON', (_soak, session) => echo(session, 'alpha_echo')]],
  [12, ['call, event stream', (_soak, session) => echo(session, 'alpha_stream')]],
  [14, ['call, stateless backend', (_soak, session) => echo(session, 'beta_echo')]],
  [6, ['call, slow backend', (_soak, session) => echo(session, 'delta_echo')]],
  [10, ['call, backend that is killed', (soak, session) => shaky(soak, session, 'gamma')]],
  [5, ['call, backend that comes and goes', (soak, session) => shaky(soak, session, 'epsilon')]],
  [6, ['call with progress', progress]],
  [3, ['call that asks', question]],
  [3, ['call, hung up', hangUp]],
  [2, ['call, cancelled', cancel]],
  [0.3, ['call past its deadline', deadline]],
  [1, ['call, 256 KB', large]],
  [8, ['tools/list', list]],
  [3, ['other lists', lists]],
  [4, ['resources/read', reads]],
  [2, ['prompts/get', prompt]],
  [2, ['subscribe', subscribe]],
  [3, ['ping, setLevel', small]],
]

/** Opens one session after the other until the soak ends. */
export async function sessionClient(soak: Soak): Promise<void> {
  while (!soak.over()) {
    await soak.pace()
    let session: WireSession | undefined
    await soak.ledger.run('session: initialize', async () => {
      session = await inTime(openSession(soak.url, { capabilities: { elicitation: {} } }))
    })
    if (session) await live(soak, session)
  }
}

async function live(soak: Soak, session: WireSession): Promise<void> {
  let stream: WireStream | undefined
  if (Math.random() < 0.5) {
    await soak.ledger.run('session: GET stream', async () => {
      stream = await inTime(session.listen())
      if (stream.status !== 200) throw new Unexpected(`GET: ${stream.status}`)
    })
  }
  const operations = 3 + Math.floor(Math.random() * 40)
  for (let n = 0; n < operations && !soak.over(); n++) {
    await soak.pace()
    const [name, work] = weighted(works)
    await soak.ledger.run(`session: ${name}`, () => work(soak, session))
  }
  if (stream) {
    soak.heard(stream.pending)
    stream.close()
  }
  if (Math.random() < 0.5) {
    await soak.ledger.run('session: DELETE', async () => {
      const { status } = await inTime(session.end())
      if (status !== 200) throw new Unexpected(`DELETE: ${status}`)
    })
  }
}
