/** When `proxy stdio` ends, it first answers every pending request of the client with an error. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { startOidcProvider } from '../../../helpers/authserver/oidc-provider.ts'
import { runGatehouse } from '../../../helpers/gatehouse.ts'
import { proves } from '../../../helpers/proves.ts'
import { rpc, startUpstream } from '../../../helpers/proxy/rig.ts'
import { initialize, initialized, startStdio, statelessMeta } from '../../../helpers/proxy/stdio-rig.ts'

proves('1.command.stdio')

interface Answer {
  readonly id: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

async function readAnswers(next: () => Promise<Answer>, count: number): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  for (let n = 0; n < count; n++) answers.push(await next())
  return answers.toSorted((a, b) => Number(a.id) - Number(b.id))
}

const lines = [initialize, initialized, rpc(1, 'tools/list'), rpc(2, 'ping')].map((line) =>
  typeof line === 'string' ? line : JSON.stringify(line),
)
const stateless = [3, 4].map((id) => rpc(id, 'tools/list', { _meta: statelessMeta }))

for (const [name, sent, ids] of [
  ['session client', lines, [0, 1, 2]],
  ['stateless client', stateless, [3, 4]],
] as const) {
  await t.test(`${name}, dead server: all pending requests are answered before the end`, async (t) => {
    const bridge = startStdio(t, 'http://127.0.0.1:1/mcp')
    for (const line of sent) bridge.send(line)
    const answers = await readAnswers(bridge.message, ids.length)
    t.match(
      answers,
      ids.map((id) => ({ id, error: { code: -32603, message: /could not be reached|not be reached/ } })),
    )
    t.equal(await bridge.done, false)
  })

  await t.test(`${name}, dead server: the command answers, too`, async (t) => {
    const { code, stdout } = await runGatehouse(
      ['proxy', 'stdio', 'http://127.0.0.1:1/mcp'],
      `${sent.join('\n')}\n`,
    )
    t.equal(code, 1)
    const answers = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Answer)
    t.strictSame(
      answers.map(({ id }) => Number(id)).toSorted((a, b) => a - b),
      ids,
    )
    t.ok(answers.every(({ error }) => error?.code === -32603))
  })
}

await t.test(
  'a server that disconnects during the handshake: all pending requests are answered',
  async (t) => {
    const hasty = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    t.teardown(() => hasty.close())
    await once(hasty, 'listening')
    const address = hasty.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const bridge = startStdio(t, `http://127.0.0.1:${port}/mcp`)
    for (const line of lines) bridge.send(line)
    const answers = await readAnswers(bridge.message, 3)
    t.match(
      answers,
      [0, 1, 2].map((id) => ({ id, error: { code: -32603 } })),
    )
  },
)

for (const [name, sent, ids] of [
  ['session', [rpc(1, 'ping'), rpc(2, 'tools/list')], [1, 2]],
  ['stateless', stateless, [3, 4]],
] as const) {
  await t.test(`${name} requests cut off by a signal or the end of input are answered`, async (t) => {
    for (const end of ['signal', 'input'] as const) {
      const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
      let requests = 0
      const target = await startUpstream(() => {
        if (++requests === sent.length) arrive()
      })
      t.teardown(() => target.close())
      const stop = new AbortController()
      const bridge = startStdio(t, `${target.url}/mcp`, { drainMs: 1, signal: stop.signal })
      for (const line of sent) bridge.send(line)
      await arrived
      if (end === 'signal') stop.abort()
      else bridge.input.end()
      const answers = await readAnswers(bridge.message, ids.length)
      t.match(
        answers,
        ids.map((id) => ({ id, error: { code: -32603, message: /ended before the response/ } })),
      )
      await bridge.done
    }
  })
}

await t.test('a failed login: pending requests are answered, and the command exits with 3', async (t) => {
  const target = await startUpstream((_seen, res) => res.writeHead(401).end())
  const idp = await startOidcProvider({ resources: { [target.url]: {} } })
  t.teardown(() => Promise.all([target.close(), idp.close()]))
  const { code, stdout } = await runGatehouse(
    [
      ...['proxy', 'stdio', `${target.url}/mcp`, '--remote-auth', '--remote-auth-issuer', idp.issuer],
      ...['--remote-auth-skip-browser', '--remote-auth-callback-port', '0', '--remote-auth-ephemeral'],
      ...['--remote-auth-timeout', '100ms'],
    ],
    `${lines.join('\n')}\n`,
  )
  t.equal(code, 3)
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer)
  t.match(
    answers,
    [0, 1, 2].map((id) => ({ id, error: { code: -32603, message: /remote-auth-timeout/ } })),
  )
})

await t.test('a request that its client has cancelled gets no response', async (t) => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const target = await startUpstream(() => arrive())
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`, { drainMs: 1 })
  const seen: string[] = []
  bridge.output.on('data', (chunk: Buffer) => seen.push(chunk.toString()))
  bridge.send(stateless[0] ?? '')
  await arrived
  bridge.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}')
  await bridge.end()
  t.strictSame(seen, [])
})

await t.test('a cancelled request of a session gets no response when the input ends', async (t) => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const target = await startUpstream((seen, res) => {
    if (seen.method !== 'POST') return void res.writeHead(405).end()
    if (seen.body.includes('"initialize"')) {
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        serverInfo: { name: 's', version: '1' },
      }
      res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
      res.end(JSON.stringify({ jsonrpc: '2.0', id: initialize.id, result }))
    } else if (seen.body.includes('"tools/call"')) arrive()
    else res.writeHead(202).end()
  })
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`, { drainMs: 1 })
  bridge.send(initialize)
  await bridge.next()
  const seen: string[] = []
  bridge.output.on('data', (chunk: Buffer) => seen.push(chunk.toString()))
  bridge.send(rpc(3))
  await arrived
  bridge.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}')
  await bridge.end()
  t.strictSame(seen, [])
})
