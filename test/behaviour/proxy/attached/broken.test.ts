/**
 * Failures of an attached server: each call ends with a result or an error with the cause, sessions continue, and each
 * problem is reported with the next step.
 */
import t, { type Test as TapTest } from 'tap'
import { makeEvents } from '../../../../runtime/observe/index.ts'
import { attachedBridge, isReady, sessionProgram, startApiStub } from '../../../helpers/kube/attach-stub.ts'
import { openSession, type RpcMessage, type WireSession } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'

async function bridgeTo(t: TapTest, more = {}, words: readonly string[] = sessionProgram) {
  const { stub, baseUrl } = await startApiStub(t, words)
  const lines: string[] = []
  const bridge = await attachedBridge(t, baseUrl, { onLine: (line: string) => lines.push(line), ...more })
  return { stub, baseUrl, bridge, url: bridge.url, lines }
}

const echo = (session: WireSession, text: string) =>
  session.request('tools/call', { name: 'echo', arguments: { text } })

async function isWaiting(lines: readonly string[]): Promise<void> {
  await until(() => lines.includes('fixture: waiting'))
}

const lost =
  /the connection to the server was lost during the request \(.+\); the request may have been executed and is not sent again/

t.test('broken: a killed server loses its in-flight calls, and nothing else', async (t) => {
  const { stub, bridge, url, lines } = await bridgeTo(t)
  const session = await openSession(url)
  const call = session.request('tools/call', { name: 'wait', arguments: {} })
  await isWaiting(lines)
  await stub.kill()
  const { response } = await call
  t.match(response?.error?.message, lost)
  t.equal(response?.error?.code, -32603)
  await until(async () => !(await isReady(bridge)))
  const meanwhile = echo(session, 'meanwhile')
  const opening = openSession(url)
  stub.restarts++
  stub.start()
  t.match((await meanwhile).text, 'meanwhile', 'unsent messages wait')
  t.ok((await opening).id, 'and so does a new session')
  t.match((await echo(session, 'after')).text, 'after', 'the session continues')
  await until(() => isReady(bridge))
  t.match(JSON.parse(stub.record['attach.json'] ?? ''), { attached: true, restarts: 1, lost: 1 })
})

t.test('broken: a stream that breaks is reattached without another initialize', async (t) => {
  const { stub, url, lines } = await bridgeTo(t)
  const session = await openSession(url)
  const call = session.request('tools/call', { name: 'wait', arguments: {} })
  await isWaiting(lines)
  stub.streams.cut()
  t.match((await call).response?.error?.message, lost)
  t.match((await echo(session, 'after')).text, 'after')
  t.equal(stub.requests.filter((line) => line.startsWith('UPGRADE')).length, 2)
  t.match(JSON.parse(stub.record['attach.json'] ?? ''), { run: 'pod-1/stub://1' })
})

t.test('broken: a stream that outlives its container is closed', async (t) => {
  const { stub, url, lines } = await bridgeTo(t)
  const session = await openSession(url)
  const call = session.request('tools/call', { name: 'wait', arguments: {} })
  await isWaiting(lines)
  stub.streams.forget()
  await stub.restart()
  t.match((await call).response?.error?.message, 'the container restarted')
  t.match((await echo(session, 'after')).text, 'after')
})

t.test('broken: each request gets a timely error when the server does not come back', async (t) => {
  const { stub, url, bridge } = await bridgeTo(t, { waitMs: 300 })
  const session = await openSession(url)
  await stub.kill()
  stub.waiting = { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed container' }
  const told = () => JSON.parse(stub.record['attach.json'] ?? '')
  await until(() => told().reason === 'CrashLoopBackOff')
  t.equal(told().revision, 'server-one', 'the pod’s template')
  const { response } = await echo(session, 'never')
  t.match(
    response?.error?.message,
    /was not sent: the server exits as soon as it starts.+kubectl logs server-0/,
  )
  t.notOk(await isReady(bridge))
})

for (const { name, spoil, reason, message } of [
  {
    name: 'attach is rejected',
    spoil: { refusal: { code: 403, message: 'pods "server-0" is forbidden: cannot create pods/attach' } },
    reason: 'AccessRefused',
    message: /pods "server-0" is forbidden.+the Role and RoleBinding/,
  },
  {
    name: 'the pod may not be read',
    spoil: { podStatus: 403 },
    reason: 'AccessRefused',
    message: /told 403/,
  },
  {
    name: 'the token is not accepted',
    spoil: { podStatus: 401 },
    reason: 'AccessRefused',
    message: /restart the proxy's pod/,
  },
  {
    name: 'there is no pod',
    spoil: { podStatus: 404 },
    reason: 'PodNotFound',
    message: /events of the StatefulSet/,
  },
  {
    name: 'the API server fails',
    spoil: { podStatus: 500 },
    reason: 'ApiServerError',
    message: /returned 500/,
  },
])
  t.test(`broken: ${name}: reported in an event and the record, and cleared afterwards`, async (t) => {
    const { stub, baseUrl } = await startApiStub(t)
    Object.assign(stub, spoil)
    const told: string[] = []
    const events = makeEvents()
    events.listen(({ fields }) => void ('why' in fields && told.push(fields.why)))
    const bridge = await attachedBridge(t, baseUrl, { events })
    await until(() => stub.record['attach.json']?.includes(reason) === true)
    t.match(JSON.parse(stub.record['attach.json'] ?? ''), { attached: false, reason, message })
    const response = await fetch(`http://127.0.0.1:${bridge.healthPort}/readyz`)
    t.equal(response.status, 503)
    t.match(((await response.json()) as { reason: string }).reason, message)
    await until(() => stub.requests.length > 12)
    t.equal(told.filter((text) => message.test(text)).length, 1, 'once')
    Object.assign(stub, { refusal: undefined, podStatus: 200 })
    await until(() => isReady(bridge))
    const session = await openSession(bridge.url)
    t.match((await echo(session, 'mended')).text, 'mended')
  })

t.test('broken: a record that cannot be written blocks no request', async (t) => {
  const { stub, baseUrl } = await startApiStub(t)
  stub.recordStatus = 403
  const { url } = await attachedBridge(t, baseUrl)
  t.match((await echo(await openSession(url), 'still')).text, 'still')
})

t.test('broken: half a line from an earlier proxy is ignored', async (t) => {
  const { stub, baseUrl } = await startApiStub(t)
  stub.child.stdin?.write('{"jsonrpc":"2.0","id":"old-1","method":"tools/call","params":{"name":"ec')
  const { url } = await attachedBridge(t, baseUrl)
  t.match((await echo(await openSession(url), 'after')).text, 'after')
})

t.test(
  'broken: a replacement proxy continues where the last one stopped, and skips its responses',
  async (t) => {
    // A server that rejects a second initialize, as some servers do.
    const { stub, baseUrl } = await startApiStub(t, ['test/helpers/mcp/once-program.ts'])
    const first = await attachedBridge(t, baseUrl, { pod: 'proxy-a' })
    const before = await openSession(first.url)
    const slow = before.request('slow', { ms: 300 })
    await until(() => stub.record['attach.json']?.includes('introduction') === true)
    await until(() => stub.requests.some((line) => line.startsWith('UPGRADE')))
    await slow.then(() => undefined)
    const pending = before.request('slow', { ms: 400 }).catch(() => undefined)
    await first.close()
    await pending
    t.equal(JSON.parse(stub.record['attach.json'] ?? '').holder, null, 'it has released the record')
    const second = await attachedBridge(t, baseUrl, { pod: 'proxy-b' })
    const session = await openSession(second.url)
    t.match(session.initialized.result, { serverInfo: { name: 'once' } })
    t.match((await session.request('slow', { ms: 500 })).response?.result, { initialized: 1 })
  },
)

t.test('broken: with two proxies, one is attached and the other one waits and reports it', async (t) => {
  const { stub, baseUrl } = await startApiStub(t)
  const first = await attachedBridge(t, baseUrl, { pod: 'proxy-a' })
  await until(() => isReady(first))
  const session = await openSession(first.url)
  const second = await attachedBridge(t, baseUrl, { pod: 'proxy-b', waitMs: 200 })
  const refused = await openSession(second.url)
  t.match(refused.initialized.error?.message, /was not sent: another proxy is attached/)
  t.notOk(await isReady(second))
  t.equal(stub.streams.attachers, 1, 'never both at once')
  t.match((await echo(session, 'here')).text, 'here')
  await first.close()
  await until(() => isReady(second))
  t.match((await echo(await openSession(second.url), 'there')).text, 'there')
  t.equal(stub.streams.attachers, 1)
})

t.test('broken: the record of a killed proxy is taken over when it stops being renewed', async (t) => {
  const { stub, baseUrl } = await startApiStub(t)
  stub.record['attach.json'] = JSON.stringify({ holder: 'proxy-dead', attached: true })
  const bridge = await attachedBridge(t, baseUrl)
  await until(() => stub.requests.length > 3)
  t.notOk(await isReady(bridge))
  await until(() => isReady(bridge))
  t.equal(JSON.parse(stub.record['attach.json'] ?? '').holder, 'proxy-a')
})

t.test('broken: a line that is too long fails only its request', async (t) => {
  const { url } = await bridgeTo(t, {}, ['test/helpers/mcp/once-program.ts'])
  const session = await openSession(url)
  const [long, short] = await Promise.all([
    session.request('long', { bytes: 65 * 1024 * 1024 }),
    session.request('slow', { ms: 10 }),
  ])
  t.equal(long.response?.error?.message, 'the result exceeds the size limit')
  t.ok(short.response?.result)
})

t.test('broken: output that is not a message is dropped, and standard error is separate', async (t) => {
  const { url, lines } = await bridgeTo(t, {}, ['test/helpers/mcp/once-program.ts'])
  const session = await openSession(url)
  t.ok((await session.request('chatter')).response?.result)
  await until(() => lines.includes('on standard error'))
  t.notOk(lines.some((line) => line.includes('no message')))
})

t.test('broken: a server that does not read only gets what its buffer can hold', async (t) => {
  const { stub, url } = await bridgeTo(t, { waitMs: 500 }, ['test/helpers/mcp/once-program.ts'])
  const session = await openSession(url)
  stub.child.kill('SIGSTOP')
  const text = 'x'.repeat(4 * 1024 * 1024)
  const calls: Promise<RpcMessage | undefined>[] = []
  for (let n = 0; n < 14; n++)
    calls.push(session.request('slow', { ms: 1, text }).then(({ response }) => response))
  const refused = await Promise.race(calls)
  t.match(refused?.error?.message, 'the server is overloaded')
  stub.child.kill('SIGCONT')
  const answers = await Promise.all(calls)
  t.ok(
    answers.every((answer) => answer?.result !== undefined || answer?.error !== undefined),
    'none hangs',
  )
  t.ok(answers.some((answer) => answer?.result !== undefined))
})
