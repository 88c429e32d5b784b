/** Clients of the stateless era, and of the deprecated HTTP+SSE transport. */
import { setTimeout } from 'node:timers/promises'
import {
  type RpcMessage,
  stateless,
  statelessRequest,
  statelessStream,
  stream,
  type WireAnswer,
} from '../../helpers/mcp/wire.ts'
import { fromShaky, inTime, pick, requireText, resultOf, toolText, uniqueText, weighted } from './checks.ts'
import { Unexpected } from './ledger.ts'
import type { Soak } from './types.ts'

type Work = (soak: Soak) => Promise<'due' | void>

const ABLE = { capabilities: { elicitation: {} } }

function call(soak: Soak, name: string, args: unknown, more: Record<string, unknown> = {}) {
  return inTime(stateless(soak.url, 'tools/call', { name, arguments: args, ...more }, ABLE))
}

async function echo(soak: Soak, backend: string): Promise<void> {
  const text = uniqueText()
  const wanted = backend === 'beta' ? JSON.stringify({ text }) : text
  requireText(await call(soak, `${backend}_echo`, { text }), wanted)
}

async function shaky(soak: Soak, backend: 'gamma' | 'epsilon'): Promise<'due' | void> {
  const text = uniqueText()
  const before = soak.shaky(backend)
  const response = await call(soak, `${backend}_echo`, { text })
  return fromShaky(response, JSON.stringify({ text }), before || soak.shaky(backend))
}

async function list(soak: Soak): Promise<void> {
  const { tools } = resultOf(await inTime(stateless(soak.url, 'tools/list'))) as { tools: { name: string }[] }
  for (const name of ['alpha_echo', 'beta_echo', 'delta_echo'])
    if (!tools.some((tool) => tool.name === name))
      throw new Unexpected(`${name} is missing among ${tools.length} tools`)
}

function questionsOf(response: WireAnswer): Record<string, unknown> {
  const { inputRequests, requestState } = resultOf(response)
  if (typeof inputRequests !== 'object' || inputRequests === null)
    throw new Unexpected(`no questions: ${response.text.slice(0, 200)}`)
  const reply = { action: 'accept', content: { ok: true, name: 'ada' } }
  return {
    inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, reply])),
    ...(requestState === undefined ? {} : { requestState }),
  }
}

/** The most difficult combination: the call waits in the server, between two requests, for the client's responses. */
async function question(soak: Soak): Promise<void> {
  const asked = await call(soak, 'alpha_ask', {})
  await setTimeout(Math.random() * 200)
  const done = await call(soak, 'alpha_ask', {}, questionsOf(asked))
  if (!toolText(done.response).includes('ada')) throw new Unexpected('the response did not reach the tool')
}

async function passedQuestion(soak: Soak): Promise<void> {
  const name = 'beta_test_input_required_result_request_state'
  const asked = await call(soak, name, {})
  requireText(await call(soak, name, {}, questionsOf(asked)), 'state-ok')
}

async function listen(soak: Soak): Promise<void> {
  const notifications = {
    toolsListChanged: true,
    resourceSubscriptions: [pick(['lean://note', 'test://watched-resource'])],
  }
  const listener = await inTime(statelessStream(soak.url, 'subscriptions/listen', { notifications }))
  try {
    await inTime(listener.next(({ method }) => method === 'notifications/subscriptions/acknowledged'))
    await setTimeout(500 + Math.random() * 15_000)
    soak.heard(listener.pending)
  } finally {
    listener.close()
  }
}

async function hangUp(soak: Soak): Promise<void> {
  const abort = new AbortController()
  const { body, headers } = statelessRequest('tools/call', {
    name: pick(['delta_echo', 'alpha_hang', 'beta_wait']),
    arguments: {},
  })
  const accept = 'application/json, text/event-stream'
  const sent = fetch(soak.url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept },
    body,
    signal: abort.signal,
  })
    .then((response) => response.arrayBuffer())
    .catch(() => {})
  await setTimeout(10 + Math.random() * 100)
  abort.abort()
  await sent
}

async function progress(soak: Soak): Promise<void> {
  const progressToken = uniqueText()
  const name = pick(['alpha_progress', 'beta_test_tool_with_progress'])
  const response = await inTime(
    stateless(soak.url, 'tools/call', { name, arguments: {} }, { ...ABLE, meta: { progressToken } }),
  )
  if (toolText(response.response) !== 'done') throw new Unexpected('progress: not done')
  const heard = response.messages.filter(({ method }) => method === 'notifications/progress')
  if (heard.length !== 3) throw new Unexpected(`${heard.length} of 3 progress messages`)
}

async function others(soak: Soak): Promise<void> {
  const [method, params] = pick<readonly [string, Record<string, unknown>]>([
    ['server/discover', {}],
    ['resources/list', {}],
    ['resources/read', { uri: 'lean://note' }],
    ['resources/read', { uri: 'test://static-text' }],
    ['prompts/list', {}],
    ['prompts/get', { name: 'beta_test_simple_prompt' }],
  ])
  resultOf(await inTime(stateless(soak.url, method, params)))
}

/**
 * Uses the transport of 2024: opens a stream, sends requests separately, receives the responses on the stream, and
 * disconnects.
 */
async function oldSse(soak: Soak): Promise<void> {
  const events = await inTime(stream(`${soak.origin}/sse`))
  try {
    const { params } = await inTime(events.next(({ method }) => method === 'endpoint'))
    const endpoint = new URL(String(params?.['data']), soak.origin).href
    const ask = async (id: number, method: string, params: unknown): Promise<RpcMessage> => {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      })
      await response.arrayBuffer()
      if (response.status !== 202) throw new Unexpected(`POST beside the stream: ${response.status}`)
      return inTime(events.next((message) => message.id === id))
    }
    const clientInfo = { name: 'old', version: '1' }
    await ask(1, 'initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo })
    const text = uniqueText()
    if (toolText(await ask(2, 'tools/call', { name: 'alpha_echo', arguments: { text } })) !== text)
      throw new Unexpected('the wrong text')
    await ask(3, 'tools/list', {})
  } finally {
    events.close()
  }
}

const works: readonly (readonly [number, readonly [string, Work]])[] = [
  [26, ['stateless: call', (soak) => echo(soak, 'alpha')]],
  [16, ['stateless: call, stateless backend', (soak) => echo(soak, 'beta')]],
  [5, ['stateless: call, slow backend', (soak) => echo(soak, 'delta')]],
  [10, ['stateless: call, backend that is killed', (soak) => shaky(soak, 'gamma')]],
  [5, ['stateless: call, backend that comes and goes', (soak) => shaky(soak, 'epsilon')]],
  [6, ['stateless: call with progress', progress]],
  [3, ['stateless: call that asks', question]],
  [3, ['stateless: call that asks, stateless backend', passedQuestion]],
  [3, ['stateless: call, hung up', hangUp]],
  [4, ['stateless: listen', listen]],
  [8, ['stateless: tools/list', list]],
  [6, ['stateless: others', others]],
  [2, ['old SSE: open, call, list, hang up', oldSse]],
]

export async function statelessClient(soak: Soak): Promise<void> {
  while (!soak.over()) {
    await soak.pace()
    const [name, work] = weighted(works)
    await soak.ledger.run(name, () => work(soak))
  }
}
