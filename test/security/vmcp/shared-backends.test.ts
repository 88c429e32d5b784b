/**
 * Callers that share a session-era backend: a message outside of a response stream reaches the caller that it belongs
 * to, or no caller at all.
 */
import t, { type Test } from 'tap'
import { makeEvents } from '../../../runtime/observe/index.ts'
import type { VmcpServer } from '../../../runtime/vmcp/index.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { openSession, type StatelessOptions, stateless, statelessRequest } from '../../helpers/mcp/wire.ts'
import {
  type AsideBackend,
  logMessage,
  type Reply,
  startAsideBackend,
} from '../../helpers/vmcp/isolation/aside-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const asking = ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const

interface Rig {
  readonly backend: AsideBackend
  readonly vmcp: VmcpServer
  /** Request options of two clients. */
  readonly a: StatelessOptions
  readonly b: StatelessOptions
  readonly unassigned: string[]
}

/** `authenticated`: both clients have their own token; otherwise they are indistinguishable. */
async function startRig(t: Test, { authenticated }: { authenticated: boolean }, more = {}): Promise<Rig> {
  const backend = await startAsideBackend()
  const issuer = await startTokenIssuer()
  const unassigned: string[] = []
  const events = makeEvents()
  events.listen(({ type, fields }) => {
    if (type === 'backend_message_unassigned' && 'method' in fields) unassigned.push(fields.method)
  })
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { ...(authenticated ? { incomingAuth: issuer.incomingAuth } : {}), ...more },
    { events },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const as = async (subject: string): Promise<StatelessOptions> => ({
    capabilities: ABLE,
    headers: authenticated ? { authorization: `Bearer ${await issuer.token(subject)}` } : {},
  })
  return { backend, vmcp, a: await as('ada'), b: await as('bob'), unassigned }
}

function callHeld(rig: Rig, client: StatelessOptions, mark: string) {
  return stateless(rig.vmcp.url, 'tools/call', { name: 'raw_echo', arguments: { mark, hold: true } }, client)
}

/** Makes a call and cancels it once the backend has it. Resolves with the backend's session id. */
async function abandon(rig: Rig, client: StatelessOptions, mark: string): Promise<string> {
  const leave = new AbortController()
  const params = { name: 'raw_echo', arguments: { mark, hold: true } }
  const { body, headers } = statelessRequest('tools/call', params, client)
  const call = fetch(rig.vmcp.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body,
    signal: leave.signal,
  })
  const { session } = await rig.backend.call(mark)
  leave.abort()
  await call.catch(() => {})
  await rig.backend.heard('notifications/cancelled')
  return session
}

/** How the first client's call ends, and the backend's session of it. */
const endings: Readonly<Record<string, (rig: Rig) => Promise<string>>> = {
  'is cancelled': (rig) => abandon(rig, rig.a, 'first'),
  async 'times out'(rig) {
    const call = callHeld(rig, rig.a, 'first')
    const { session } = await rig.backend.call('first')
    await call
    return session
  },
  async 'loses its response stream'(rig) {
    const call = callHeld(rig, rig.a, 'first')
    const { session, res } = await rig.backend.call('first')
    res.destroy()
    await call
    return session
  },
  async 'is answered while a question is open'(rig) {
    const call = callHeld(rig, rig.a, 'first')
    const { session, res, respond } = await rig.backend.call('first')
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const question = '{"jsonrpc":"2.0","id":"open","method":"roots/list"}'
    res.write(`data: ${question}\n\n`)
    // The question has become an interim result. The call continues without an answer.
    await call
    respond()
    return session
  },
  async 'is answered'(rig) {
    const call = callHeld(rig, rig.a, 'first')
    const { session, respond } = await rig.backend.call('first')
    respond()
    await call
    return session
  },
}

for (const authenticated of [false, true])
  for (const [how, end] of Object.entries(endings))
    t.test(
      `a call ${how}; late questions reach no other ${authenticated ? 'user' : 'anonymous client'}`,
      async (t) => {
        const timeouts = { perWorkload: { raw: how === 'times out' ? '300ms' : '30s' } }
        const rig = await startRig(t, { authenticated }, { operational: { timeouts } })
        const { backend } = rig
        const session = await end(rig)
        const second = callHeld(rig, rig.b, 'second')
        const { respond } = await backend.call('second')
        for (const method of asking) {
          const asked = second.then(
            (): Reply => ({ result: { roots: [{ uri: 'the second client was asked' }] } }),
          )
          const reply = await Promise.race([backend.ask(session, method), asked])
          if (method !== 'roots/list') t.ok(reply.error, `${method} gets an error`)
          else t.notMatch(reply, { result: { roots: [{}] } })
        }
        await backend.say(session, logMessage('secret of one user'))
        respond()
        const { text, response } = await second
        t.match(response?.result, { resultType: 'complete', content: [{ text: 'second' }] })
        t.notMatch(text, 'secret')
        t.ok(rig.unassigned.includes('elicitation/create'), 'the operator gets a report')
        // The next client gets a response too.
        const third = callHeld(rig, rig.b, 'third')
        ;(await backend.call('third')).respond()
        t.match((await third).response?.result, { content: [{ text: 'third' }] })
      },
    )

t.test("a connection that is free after a user's call serves the same user again", async (t) => {
  const rig = await startRig(t, { authenticated: true })
  const sessionOf = async (client: StatelessOptions, mark: string): Promise<string> => {
    const call = callHeld(rig, client, mark)
    const { session, respond } = await rig.backend.call(mark)
    respond()
    await call
    return session
  }
  const first = await sessionOf(rig.a, '1')
  t.equal(await sessionOf(rig.a, '2'), first)
  t.not(await sessionOf(rig.b, '3'), first)
})

for (const authenticated of [false, true])
  t.test(`log messages off the response stream, authenticated: ${authenticated}`, async (t) => {
    const rig = await startRig(t, { authenticated })
    const { backend } = rig
    const logging = (client: StatelessOptions): StatelessOptions => ({
      ...client,
      capabilities: {},
      meta: { 'io.modelcontextprotocol/logLevel': 'debug' },
    })
    const first = callHeld(rig, logging(rig.a), 'first')
    const held = await backend.call('first')
    const second = callHeld(rig, logging(rig.b), 'second')
    const other = await backend.call('second')
    await backend.say(held.session, logMessage('line of the first'))
    await backend.say(other.session, logMessage('line of the second'))
    // A response to a ping shows that the log messages before it were read.
    for (const { session } of [held, other]) await backend.ask(session, 'ping')
    held.respond()
    other.respond()
    const [a, b] = await Promise.all([first, second])
    t.match(a.text, 'line of the first')
    t.notMatch(a.text, 'line of the second')
    t.match(b.text, 'line of the second')
    t.notMatch(b.text, 'line of the first')
  })

t.test('a question on the GET stream reaches the only possible caller', async (t) => {
  const rig = await startRig(t, { authenticated: false })
  const call = callHeld(rig, rig.a, 'first')
  const { session, respond } = await rig.backend.call('first')
  const answer = rig.backend.ask(session, 'elicitation/create')
  const { response } = await call
  const result = response?.result as { requestState: string; inputRequests: Record<string, unknown> }
  t.match(result, { resultType: 'input_required' })
  const [name = ''] = Object.keys(result.inputRequests)
  const again = stateless(
    rig.vmcp.url,
    'tools/call',
    {
      name: 'raw_echo',
      arguments: { mark: 'first', hold: true },
      requestState: result.requestState,
      inputResponses: { [name]: { action: 'accept', content: {} } },
    },
    rig.a,
  )
  t.match(await answer, { result: { action: 'accept' } })
  respond()
  t.match((await again).response?.result, { content: [{ text: 'first' }] })
})

t.test('after one ambiguous message, anonymous clients get separate connections', async (t) => {
  const rig = await startRig(t, { authenticated: false })
  const sessions = new Set<string>()
  for (const mark of ['1', '2', '3', '4']) {
    const call = callHeld(rig, rig.a, mark)
    const { session, respond } = await rig.backend.call(mark)
    sessions.add(session)
    const asked = call.then((): Reply => ({ result: 'asked' }))
    if (mark === '2')
      t.ok((await Promise.race([rig.backend.ask(session, 'elicitation/create'), asked])).error)
    respond()
    await call
  }
  t.equal(sessions.size, 3, 'the second call shares the session of the first, later ones share none')
})

t.test('in a session, messages go to its client', async (t) => {
  const rig = await startRig(t, { authenticated: false })
  const client = await openSession(rig.vmcp.url, { capabilities: ABLE })
  const events = await client.listen()
  const call = client.request('tools/call', { name: 'raw_echo', arguments: { mark: 'first', hold: true } })
  const { session, respond } = await rig.backend.call('first')
  respond()
  await call
  const answer = rig.backend.ask(session, 'elicitation/create')
  const question = await events.next(({ method }) => method === 'elicitation/create')
  await client.response(question.id, { action: 'decline' })
  t.match(await answer, { result: { action: 'decline' } })
  await rig.backend.say(session, logMessage('late line'))
  await events.next(({ method }) => method === 'notifications/message')
  events.close()
})
