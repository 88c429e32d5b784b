/** Clients that record every response byte: both eras over HTTP, HTTP+SSE, and lines of the stdio bridge. */
import type { Test } from 'tap'
import { createParser } from 'eventsource-parser'
import { startStdio } from '../proxy/stdio-rig.ts'
import { headersText, Tape } from './tape.ts'

export type Message = ReturnType<typeof JSON.parse>

export interface RecordingClient {
  readonly tape: Tape
  /** Sends a call. Messages of the call arrive at `until` of this client. */
  call(name: string, more?: object): Promise<void>
  /** Resolves with the next message that matches. */
  until(matches: (message: Message) => boolean): Promise<Message>
  cancel(): Promise<void>
  /** Breaks the stream of the call, and resumes it after its last event id. */
  resume?(release: () => void): Promise<void>
  answer(question: Message): Promise<void>
  /** Writes what was received since the last call to the tape. */
  finish(): Promise<void>
}

export const isResult = ({ result, error }: Message): boolean =>
  (result !== undefined || error !== undefined) && result?.resultType !== 'input_required'
export const isQuestion = ({ method, result }: Message): boolean =>
  method === 'elicitation/create' || result?.resultType === 'input_required'

const answered = { action: 'accept', content: { color: 'blue' } }
const accept = 'application/json, text/event-stream'
const clientInfo = { name: 'recorder', version: '1.0.0' }
const capabilities = { elicitation: {} }
const sessionMeta = { progressToken: 'own-progress' }
const statelessMeta = {
  ...sessionMeta,
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': capabilities,
  'io.modelcontextprotocol/logLevel': 'debug',
}
const rpc = (body: object): string => JSON.stringify({ jsonrpc: '2.0', ...body })
const initialize = {
  id: 'own-initialize',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities, clientInfo },
}
const initialized = { method: 'notifications/initialized' }
const setLevel = { id: 'own-level', method: 'logging/setLevel', params: { level: 'debug' } }
const cancelled = { method: 'notifications/cancelled', params: { requestId: 'own-call' } }
const callOf = (params: object) => ({ id: 'own-call', method: 'tools/call', params })

/** Params of the call that answers the questions of a result. */
function answersTo({ inputRequests, requestState }: Message): object {
  const keys = Object.keys(inputRequests)
  return { inputResponses: Object.fromEntries(keys.map((key) => [key, answered])), requestState }
}

/** Received messages, and the waits for them. */
class Inbox {
  readonly #messages: Message[] = []
  #wake: () => void = () => {}

  push(message: Message): void {
    this.#messages.push(message)
    this.#wake()
  }

  async until(matches: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const at = this.#messages.findIndex(matches)
      if (at >= 0) return this.#messages.splice(0, at + 1).at(-1)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  clear(): void {
    this.#messages.length = 0
  }
}

interface HttpExchange {
  readonly title: string
  readonly headers: Headers
  text: string
  lastEventId: string
  readonly status: number
  readonly ended: Promise<void>
  abort(): void
}

/** Sends a request and reads its response while it arrives. */
async function exchange(url: string, title: string, init: RequestInit, inbox: Inbox): Promise<HttpExchange> {
  const stop = new AbortController()
  const response = await fetch(url, { ...init, signal: stop.signal })
  const isStream = response.headers.get('content-type')?.includes('event-stream') ?? false
  const read = async (): Promise<void> => {
    const parser = createParser({
      onEvent({ data, event, id }) {
        if (id !== undefined) opened.lastEventId = id
        if (data !== '') inbox.push(event === 'endpoint' ? { endpoint: data } : JSON.parse(data))
      },
    })
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      const text = decoder.decode(chunk, { stream: true })
      opened.text += text
      if (isStream) parser.feed(text)
    }
    if (!isStream && opened.text.startsWith('{')) inbox.push(JSON.parse(opened.text))
  }
  const opened: HttpExchange = {
    title,
    headers: response.headers,
    text: '',
    lastEventId: '',
    status: response.status,
    ended: Promise.resolve(),
    abort: () => stop.abort(),
  }
  return Object.assign(opened, { ended: read().catch(() => {}) })
}

export async function httpClient(url: string, era: 'session' | 'stateless'): Promise<RecordingClient> {
  const tape = new Tape()
  const inbox = new Inbox()
  let exchanges: HttpExchange[] = []
  let session: Record<string, string> = {}
  let current: { readonly name: string; readonly more: object; readonly http: HttpExchange } | undefined
  async function send(title: string, body: object, more: Record<string, string> = {}): Promise<HttpExchange> {
    const headers = { 'content-type': 'application/json', accept, ...session, ...more }
    const opened = await exchange(url, title, { method: 'POST', headers, body: rpc(body) }, inbox)
    exchanges.push(opened)
    return opened
  }
  async function call(name: string, more: object = {}): Promise<void> {
    const meta = era === 'session' ? sessionMeta : statelessMeta
    const headers: Record<string, string> =
      era === 'session'
        ? {}
        : { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name }
    const http = await send(`call ${name}`, callOf({ name, arguments: {}, ...more, _meta: meta }), headers)
    current = { name, more, http }
  }
  if (era === 'session') {
    const opened = await send('initialize', initialize)
    await opened.ended
    session = {
      'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
      'mcp-protocol-version': '2025-11-25',
    }
    for (const one of [initialized, setLevel]) await (await send('open', one)).ended
    inbox.clear()
  }
  return {
    tape,
    call,
    until: (matches) => inbox.until(matches),
    async cancel() {
      if (era === 'stateless') current?.http.abort()
      else await (await send('cancel', cancelled)).ended
    },
    ...(era === 'session' && {
      async resume(release) {
        const before = current?.http
        before?.abort()
        await before?.ended
        const headers = {
          accept: 'text/event-stream',
          'last-event-id': before?.lastEventId ?? '',
          ...session,
        }
        const opened = await exchange(url, 'resume', { headers }, inbox)
        exchanges.push(opened)
        release()
        await inbox.until(isResult)
        opened.abort()
      },
    }),
    async answer({ id, result }) {
      if (era === 'session') await (await send('answer', { id, result: answered })).ended
      else await call(current?.name ?? '', { ...current?.more, ...answersTo(result) })
    },
    async finish() {
      for (const { title, ended } of exchanges) if (title !== 'cancel') await ended
      for (const { title, status, headers, text } of exchanges)
        tape.add(`${title}: ${status} ${headersText(headers)}\n${text}`)
      exchanges = []
    },
  }
}

/** HTTP+SSE: every message arrives on one stream. */
export async function sseClient(t: Pick<Test, 'teardown'>, url: string): Promise<RecordingClient> {
  const tape = new Tape()
  const inbox = new Inbox()
  const stream = await exchange(url, 'stream', { headers: { accept: 'text/event-stream' } }, inbox)
  t.teardown(() => stream.abort())
  const { endpoint } = await inbox.until((message) => message.endpoint !== undefined)
  async function send(body: object): Promise<void> {
    const response = await fetch(new URL(endpoint, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: rpc(body),
    })
    tape.add(`POST: ${response.status} ${headersText(response.headers)}`)
    await response.text()
  }
  await send(initialize)
  await inbox.until(isResult)
  await send(initialized)
  await send(setLevel)
  await inbox.until(isResult)
  return {
    tape,
    call: (name, more = {}) => send(callOf({ name, arguments: {}, ...more, _meta: sessionMeta })),
    until: (matches) => inbox.until(matches),
    cancel: () => send(cancelled),
    answer: ({ id }) => send({ id, result: answered }),
    async finish() {
      tape.add(stream.text)
      stream.text = ''
    },
  }
}

/** The lines of `gatehouse proxy stdio`. */
export async function stdioClient(
  t: Test,
  url: string,
  era: 'session' | 'stateless',
): Promise<RecordingClient> {
  const tape = new Tape()
  const rig = startStdio(t, url)
  let current = ''
  async function until(matches: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const line = await rig.next()
      tape.add(line)
      const message = JSON.parse(line)
      if (matches(message)) return message
    }
  }
  const send = async (body: object): Promise<void> => rig.send(rpc(body))
  async function call(name: string, more: object = {}): Promise<void> {
    current = name
    const meta = era === 'session' ? sessionMeta : statelessMeta
    await send(callOf({ name, arguments: {}, ...more, _meta: meta }))
  }
  if (era === 'session') {
    await send(initialize)
    await until(isResult)
    await send(initialized)
    await send(setLevel)
    await until(isResult)
  } else {
    const { progressToken: _none, ..._meta } = statelessMeta
    await send({ id: 'own-discover', method: 'server/discover', params: { _meta } })
    await until(isResult)
  }
  return {
    tape,
    call,
    until,
    cancel: () => send(cancelled),
    async answer({ id, result }) {
      if (era === 'session') await send({ id, result: answered })
      else await call(current, answersTo(result))
    },
    finish: async () => {},
  }
}
