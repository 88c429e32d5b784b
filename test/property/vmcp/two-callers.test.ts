/**
 * Tests two callers of shared backends: for any actions of callers and backends, nothing that belongs to one caller
 * reaches the other. Uses real sockets and both eras on both sides.
 *
 * The callers differ in user, scopes or a passed-through header. Backends add the mark of the caller to everything that
 * belongs to a call: results, progress, log messages and requests to the user, on the response stream or on another
 * stream, during the call or after it. `FC_RUNS` sets the number of cases, for longer runs by hand.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import type { VmcpServer } from '../../../runtime/vmcp/index.ts'
import { startNamedExchange } from '../../helpers/vmcp/isolation/named-exchange.ts'
import { startTokenIssuer, type TokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { json } from '../../helpers/mcp/raw-backend.ts'
import {
  type AsideBackend,
  type HeldCall,
  startAsideBackend,
} from '../../helpers/vmcp/isolation/aside-backend.ts'
import { MarkedClient } from '../../helpers/vmcp/isolation/two-callers.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const CASES = Number(process.env['FC_RUNS'] ?? 25)
t.setTimeout(Math.max(120_000, CASES * 2_000))

type Who = 'A' | 'B'
const marks: Readonly<Record<Who, string>> = { A: 'mark-of-ada', B: 'mark-of-bob' }
const otherOf = (who: Who): Who => (who === 'A' ? 'B' : 'A')

interface Difference {
  readonly subject: string
  readonly scope: string
  readonly key: string
}

/** Difference between the second caller and the first. */
const differences: Readonly<Record<string, Difference>> = {
  user: { subject: 'bob', scope: 'read', key: 'k1' },
  scopes: { subject: 'ada', scope: 'read write', key: 'k1' },
  header: { subject: 'ada', scope: 'read', key: 'k2' },
}
const first: Difference = { subject: 'ada', scope: 'read', key: 'k1' }

type Speech = 'log' | 'progress' | 'elicitation/create' | 'sampling/createMessage' | 'roots/list'

type Era = 'session' | 'stateless'
const era = fc.constantFrom<Era>('session', 'stateless', 'stateless')

type Action =
  | { readonly kind: 'call'; readonly who: Who; readonly backend: 'old' | 'new'; readonly logs: boolean }
  | { readonly kind: 'say'; readonly at: number; readonly what: Speech; readonly beside: boolean }
  | { readonly kind: 'end'; readonly at: number; readonly how: 'respond' | 'cancel' | 'break' }
  | { readonly kind: 'list' | 'reconnect'; readonly who: Who }

const who = fc.constantFrom<Who>('A', 'B')
/** Index of a call, counted back from the latest. */
const at = fc.nat(3)
const what = fc.constantFrom<Speech>(
  'log',
  'progress',
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
)
const how = fc.constantFrom('respond' as const, 'cancel' as const, 'break' as const)
const call = fc.record({
  kind: fc.constant('call' as const),
  who,
  backend: fc.constantFrom('old' as const, 'old' as const, 'new' as const),
  logs: fc.boolean(),
})
const say = fc.record({ kind: fc.constant('say' as const), at, what, beside: fc.boolean() })
const single: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: call },
  { weight: 5, arbitrary: say },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), at, how }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('list' as const, 'reconnect' as const), who }) },
)
/** One caller's call ends and the other's begins, while the backend still sends messages for the first. */
const handover: fc.Arbitrary<readonly Action[]> = fc
  .record({ who, how, what, beside: fc.boolean(), logs: fc.boolean(), ends: fc.boolean() })
  .map(({ who, how, what, beside, logs, ends }): readonly Action[] => [
    { kind: 'call', who, backend: 'old', logs },
    ...(ends ? [{ kind: 'end', at: 0, how } as const] : []),
    { kind: 'call', who: otherOf(who), backend: 'old', logs },
    { kind: 'say', at: 1, what, beside },
  ])
const actions: fc.Arbitrary<readonly Action[]> = fc
  .array(
    fc.oneof(
      single.map((one) => [one]),
      single.map((one) => [one]),
      handover,
    ),
    { minLength: 2, maxLength: 8 },
  )
  .map((parts) => parts.flat())

const scenario = fc.record({
  difference: fc.constantFrom(...Object.keys(differences)),
  /** True when backends receive the identity of the caller. */
  perCaller: fc.boolean(),
  eras: fc.record({ A: era, B: era }),
  /** True when the callers support requests to the user. */
  able: fc.boolean(),
  actions,
})

/** Lists the data that reached the wrong caller. */
class Watch {
  readonly leaks: string[] = []
  readonly #credentials = new Map<string, string>()

  /** A request to a backend in a session. All requests of one session have the same credential. */
  request({ authorization, 'x-api-key': key, 'mcp-session-id': session }: IncomingHttpHeaders): void {
    if (session === undefined) return
    const credential = `${authorization ?? ''} ${String(key ?? '')}`
    const before = this.#credentials.get(session) ?? credential
    this.#credentials.set(session, before)
    if (before !== credential) this.leaks.push(`one backend session for "${before}" and "${credential}"`)
  }

  /** The response to a request that a backend made during a call. */
  answer(owner: string, reply: unknown): void {
    const wrong = owner === marks.A ? marks.B : marks.A
    if (JSON.stringify(reply).includes(wrong))
      this.leaks.push(`a question of ${owner} was answered by ${wrong}`)
  }

  received(own: Who, messages: readonly string[]): void {
    const wrong = messages.find((message) => message.includes(marks[otherOf(own)]))
    if (wrong !== undefined) this.leaks.push(`${own} received ${wrong}`)
  }
}

/** A call at a backend. `say` does nothing when no stream is open. */
interface RunningCall {
  readonly mark: string
  say(what: Speech, beside: boolean): Promise<void>
  respond(): void
  break(): void
  /** Aborts the request of the client. */
  readonly leave?: AbortController
}

function startStream(res: ServerResponse): boolean {
  if (res.writableEnded || res.destroyed) return false
  if (!res.headersSent) res.writeHead(200, { 'content-type': 'text/event-stream' })
  return true
}

function notificationFor(what: 'log' | 'progress', mark: string, token: unknown): string {
  const method = what === 'log' ? 'notifications/message' : 'notifications/progress'
  const params =
    what === 'log' ? { level: 'error', data: mark } : { progressToken: token, progress: 1, message: mark }
  return JSON.stringify({ jsonrpc: '2.0', method, params })
}

/** A call at the session-era backend. */
function oldCall(backend: AsideBackend, call: HeldCall, token: unknown, watch: Watch): RunningCall {
  return {
    mark: call.mark,
    async say(what, beside) {
      let message: string
      if (what === 'log' || what === 'progress') message = notificationFor(what, call.mark, token)
      else {
        const question = backend.question(what, call.mark)
        void question.reply.then((reply) => watch.answer(call.mark, reply))
        message = question.message
      }
      const stream = beside
        ? [...backend.streams].find(({ req }) => req.headers['mcp-session-id'] === call.session)
        : call.res
      if (!stream || (!beside && !startStream(stream))) return
      // The response to a ping proves that all earlier messages were read.
      const ping = backend.question('ping', '')
      stream.write(`data: ${message}\n\ndata: ${ping.message}\n\n`)
      const closed = new Promise<void>((resolve) => stream.once('close', resolve))
      await Promise.race([ping.reply, closed])
    },
    respond: () => {
      if (!call.res.writableEnded && !call.res.destroyed) call.respond()
    },
    break: () => call.res.destroy(),
  }
}

/** A stateless backend: it asks with an interim result, and sends everything else on the response stream. */
async function startModern(
  watch: Watch,
  onCall: (call: RunningCall) => void,
  toolOf: (h: IncomingHttpHeaders) => string,
) {
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (chunk: Buffer) => (body += chunk.toString()))
    req.on('end', () => {
      const { id, method, params } = JSON.parse(body) as {
        id: unknown
        method: string
        params: Record<string, Record<string, unknown> | undefined>
      }
      const reply = (result: unknown): string =>
        JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...(result as object) } })
      if (method === 'server/discover')
        return json(res, reply({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }))
      if (method === 'tools/list')
        return json(res, reply({ tools: [tool('hold'), tool(toolOf(req.headers))] }))
      if (method !== 'tools/call') return json(res, reply({}))
      const mark = String(params['arguments']?.['mark'])
      if (params['inputResponses']) watch.answer(mark, params['inputResponses'])
      const end = (result: unknown): void => {
        if (!startStream(res)) return
        res.end(`data: ${reply(result)}\n\n`)
      }
      onCall({
        mark,
        async say(what) {
          const token = params['_meta']?.['progressToken']
          if (what === 'log' || what === 'progress') {
            if (startStream(res)) res.write(`data: ${notificationFor(what, mark, token)}\n\n`)
          } else if (!params['inputResponses']) {
            const inputRequests = {
              q: {
                method: what,
                params: { message: mark, requestedSchema: { type: 'object', properties: {} } },
              },
            }
            end({ resultType: 'input_required', inputRequests, requestState: mark })
          }
        },
        respond: () => end({ content: [{ type: 'text', text: mark }] }),
        break: () => res.destroy(),
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function tool(name: string) {
  return { name, inputSchema: { type: 'object' } }
}

interface Shared {
  readonly issuer: TokenIssuer
  readonly tokenUrl: string
}

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

/** Runs one scenario. Returns the data that reached the wrong caller. */
async function play(
  { difference, perCaller, eras, able, actions }: Scenario,
  shared: Shared,
): Promise<readonly string[]> {
  const watch = new Watch()
  // With a header that is not passed on, both callers would be the same.
  const isSeen = perCaller || difference !== 'header'
  const second = differences[isSeen ? difference : 'user'] ?? first
  const who: Readonly<Record<Who, Difference>> = { A: first, B: second }
  /** A tool that only one caller may see, when backends receive the identity of the caller. */
  const toolOf = ({ authorization = '', 'x-api-key': key }: IncomingHttpHeaders): string => {
    if (!perCaller) return 'common'
    const isA = authorization === 'Bearer ada.read' && key === 'k1'
    return isA ? marks.A : marks.B
  }
  const running: RunningCall[] = []
  let wake = (): void => {}
  const arrived = (call: RunningCall): void => {
    running.push(call)
    wake()
  }
  const old = await startAsideBackend({
    tools: () => [],
    before(req) {
      if (perCaller) watch.request(req.headers)
      return false
    },
    responses: {
      'tools/list': ({ headers }) => JSON.stringify({ tools: [tool('hold'), tool(toolOf(headers))] }),
    },
  })
  const modern = await startModern(watch, arrived, toolOf)
  const outgoingAuth = perCaller
    ? {
        source: 'inline',
        default: { type: 'token_exchange', tokenExchange: { tokenUrl: shared.tokenUrl } },
      }
    : { source: 'inline' }
  const vmcp: VmcpServer = await startTestVmcp(
    { old: old.url, new: modern.url },
    {
      incomingAuth: shared.issuer.incomingAuth,
      outgoingAuth,
      ...(perCaller ? { passthroughHeaders: ['X-Api-Key'] } : {}),
      operational: { failureHandling: { partialFailureMode: 'best_effort' } },
    },
  )
  const clients = {} as Record<Who, MarkedClient>
  const ends: { leave: AbortController; done: Promise<void> }[] = []
  try {
    for (const name of ['A', 'B'] as const) {
      const { subject, scope, key } = who[name]
      const token = await shared.issuer.token(subject, { scope })
      const headers = { authorization: `Bearer ${token}`, 'x-api-key': key }
      clients[name] = new MarkedClient({ url: vmcp.url, mark: marks[name], headers, era: eras[name], able })
      await clients[name].open()
    }
    let calls = 0
    for (const step of actions) {
      if (step.kind === 'list') await clients[step.who].list()
      else if (step.kind === 'reconnect') {
        await clients[step.who].close()
        await clients[step.who].open()
      } else if (step.kind === 'call') {
        const number = ++calls
        const leave = new AbortController()
        const mark = marks[step.who]
        const args = { mark, hold: true, number }
        const client = clients[step.who]
        const known = old.calls.length
        const before = running.length
        const done = client
          .call(`${step.backend}_hold`, args, { signal: leave.signal, logs: step.logs })
          .catch(() => {})
        ends.push({ leave, done })
        const here = new Promise<void>((resolve) => {
          wake = resolve
        })
        if (step.backend === 'new') {
          await Promise.race([here, done])
          if (running.length === before) continue
        } else {
          const isHere = (): boolean => old.calls.length > known
          const state = { isOver: false }
          void done.then(() => {
            state.isOver = true
          })
          while (!isHere() && !state.isOver) await new Promise(setImmediate)
          const call = old.calls.at(-1)
          if (!call || !isHere()) continue
          const request = old.requests.findLast(({ res }) => res === call.res)
          const meta = request?.params['_meta'] as { progressToken?: unknown } | undefined
          running.push({ ...oldCall(old, call, meta?.progressToken, watch), leave })
        }
      } else if ('at' in step && running.length > 0) {
        const place = Math.max(0, running.length - 1 - step.at)
        const call = running[place]
        if (step.kind === 'say') await call?.say(step.what, step.beside)
        else if (step.how === 'respond') call?.respond()
        else if (step.how === 'break') call?.break()
        else {
          call?.leave?.abort()
          // Requests to the server give it time to notice the abort.
          for (let n = 0; n < 3; n++) await fetch(`${vmcp.origin}/healthz`)
        }
      }
    }
    for (const call of running) call.respond()
    for (const { leave } of ends) setTimeout(() => leave.abort(), 100).unref()
    for (const { done } of ends) await done
  } finally {
    for (const name of ['A', 'B'] as const) {
      await clients[name]?.close().catch(() => {})
      if (clients[name]) watch.received(name, clients[name].received)
    }
    await vmcp.close()
    await old.close()
    await modern.close()
  }
  return watch.leaks
}

t.test('two callers: nothing that belongs to one reaches the other', async (t) => {
  const issuer = await startTokenIssuer()
  const exchange = await startNamedExchange()
  t.teardown(async () => {
    await issuer.close()
    exchange.close()
  })
  const shared = { issuer, tokenUrl: exchange.tokenUrl }
  await fc.assert(
    fc.asyncProperty(scenario, async (given) => {
      const leaks = await play(given, shared)
      if (leaks.length > 0) throw new Error(leaks.join('\n'))
    }),
    { numRuns: CASES, endOnFailure: true, ...(process.env['FC_RUNS'] ? {} : { seed: 42 }) },
  )
  t.pass(`${CASES} scenarios`)
})
