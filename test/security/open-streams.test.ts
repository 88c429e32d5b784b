/** Streams end with their caller's token or grant: every kind of stream, on every replica. */
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { makeAuthenticator } from '../../runtime/incoming/index.ts'
import { login, redeem, type Rig, startAuthServer, tokensOf } from '../helpers/authserver/authserver.ts'
import { startTokenIssuer, type TokenIssuer } from '../helpers/authserver/token-issuer.ts'
import { type RawBackend, startRawBackend, textResult } from '../helpers/mcp/raw-backend.ts'
import {
  openSession,
  statelessRequest,
  statelessStream,
  stream,
  type WireStream,
} from '../helpers/mcp/wire.ts'
import { json, startRig, startUpstream } from '../helpers/proxy/rig.ts'
import { startTestVmcp, vmcpConfig } from '../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const listen = { notifications: { toolsListChanged: true } }

/** One stream of each kind that a virtual server offers. */
async function vmcpStreams(origin: string, token: string): Promise<Record<string, WireStream>> {
  const url = `${origin}/mcp`
  const headers = bearer(token)
  const session = await openSession(url, { headers })
  const streams = {
    GET: await stream(url, { headers: { ...session.headers, ...headers } }),
    sse: await stream(`${origin}/sse`, { headers }),
    listen: await statelessStream(url, 'subscriptions/listen', listen, { headers }),
  }
  await streams.listen.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
  for (const [kind, { status }] of Object.entries(streams)) if (status !== 200) throw new Error(kind)
  return streams
}

function allEnded(streams: Record<string, WireStream>): Promise<unknown> {
  return Promise.all(Object.values(streams).map(({ ended }) => ended))
}

/** Returns whether a stream is open, after the event loop has had time to notice its end. */
async function isOpen({ ended }: WireStream): Promise<boolean> {
  const pause = new Promise((resolve) => setTimeout(resolve, 50, true))
  return (await Promise.race([ended.then(() => false), pause])) === true
}

t.test('a virtual server: streams end when the token expires, and other streams stay', async (t) => {
  const issuer = await startTokenIssuer()
  const [arrived, finished] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  const backend = await startRawBackend({
    responses: {
      'tools/call': () => {
        arrived.resolve()
        return finished.promise
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, { incomingAuth: issuer.incomingAuth })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const long = await vmcpStreams(vmcp.origin, await issuer.token('bob'))
  const token = await issuer.token('ada', {}, 3)
  const streams = await vmcpStreams(vmcp.origin, token)
  const session = await openSession(`${vmcp.origin}/mcp`, { headers: bearer(token) })
  const call = session.request('tools/call', { name: 'raw_echo', arguments: {} }, bearer(token))
  await allEnded(streams)
  t.match(
    await streams['listen']?.next(),
    { result: { resultType: 'complete' } },
    'a subscription ends with its result',
  )
  for (const [kind, one] of Object.entries(long)) t.ok(await isOpen(one), kind)
  await arrived.promise
  finished.resolve(textResult('finished'))
  t.match((await call).response?.result, { content: [{ text: 'finished' }] }, 'a call in flight completes')
})

t.test('a virtual server that checks tokens differently after a reload: all streams end', async (t) => {
  const [issuer, next] = [await startTokenIssuer(), await startTokenIssuer()]
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url }, { incomingAuth: issuer.incomingAuth })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close(), next.close()]))
  const streams = await vmcpStreams(vmcp.origin, await issuer.token('ada'))
  vmcp.reload(vmcpConfig({}, { incomingAuth: issuer.incomingAuth }))
  for (const [kind, one] of Object.entries(streams))
    t.ok(await isOpen(one), `${kind}: other settings changed`)
  vmcp.reload(vmcpConfig({}, { incomingAuth: next.incomingAuth }))
  await allEnded(streams)
})

function incomingOf({ issuer, audience, jwksUrl }: TokenIssuer) {
  return makeAuthenticator({ type: 'oidc', oidc: { issuer, audience, jwksUrl, jwksAllowPrivateIp: true } })
}

t.test('a proxy: streams and WebSockets end when the token expires', async (t) => {
  const issuer = await startTokenIssuer()
  let finish = (): void => void t.fail('the call has not arrived')
  const upstream = await startUpstream((seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write(seen.url === '/sse' ? 'event: endpoint\ndata: /messages?session_id=1\n\n' : ': \n\n')
    if (seen.body.includes('tools/call'))
      finish = () => res.end('data: {"jsonrpc":"2.0","id":1,"result":{"text":"finished"}}\n\n')
  })
  upstream.server.on('upgrade', (_req, socket) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello')
    socket.pipe(socket)
  })
  const rig = await startRig(upstream.url, { incoming: () => incomingOf(issuer) })
  t.teardown(() => Promise.all([rig.close(), upstream.close(), issuer.close()]))
  const headers = bearer(await issuer.token('ada', {}, 2))
  const request = statelessRequest('subscriptions/listen', listen, { headers })
  const call = { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}' }
  const streams: Record<string, WireStream> = {
    GET: await stream(`${rig.url}/mcp`, { headers }),
    sse: await stream(`${rig.url}/sse`, { headers }),
    listen: await stream(`${rig.url}/mcp`, { method: 'POST', ...request }),
  }
  const calling = await stream(`${rig.url}/mcp`, { ...call, headers: { ...json, ...headers } })
  for (const [kind, { status }] of Object.entries({ ...streams, calling })) t.equal(status, 200, kind)
  const socket = connect(rig.port, '127.0.0.1')
  const lines = ['GET /ws HTTP/1.1', 'Host: localhost', 'Connection: Upgrade', 'Upgrade: websocket']
  socket.write([...lines, `Authorization: ${headers.authorization}`, '', ''].join('\r\n'))
  await once(socket, 'data')
  const closed = once(socket, 'close')
  await Promise.all([allEnded(streams), closed])
  t.ok(await isOpen(calling), 'the stream of a call continues')
  finish()
  t.match(await calling.next(), { result: { text: 'finished' } })
})

async function replica(t: Test, rig: Rig, backend: RawBackend) {
  const oidc = {
    issuer: rig.issuer,
    audience: rig.resource,
    clientId: 'gateway',
    jwksAllowPrivateIp: true,
  }
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { incomingAuth: { type: 'oidc', oidc } },
    { authServer: { ...rig.server, config: rig.config } },
  )
  t.teardown(() => vmcp.close())
  return vmcp
}

t.test('the embedded authorization server: a revocation ends the streams on every replica', async (t) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signingKeys = [privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()]
  const hmacSecrets = [Buffer.alloc(48, 7)]
  const rig = await startAuthServer(t, { config: { secrets: () => ({ signingKeys, hmacSecrets }) } })
  const backend = await startRawBackend()
  t.teardown(() => backend.close())
  const one = await replica(t, rig, backend)
  const two = await replica(t, await rig.replica(), backend)
  const from = await login(rig)
  const kept = await tokensOf(await redeem(rig, await login(rig)))
  const tokens = await tokensOf(await redeem(rig, from))
  const [here, there, others] = [
    await vmcpStreams(one.origin, tokens.access_token),
    await vmcpStreams(two.origin, tokens.access_token),
    await vmcpStreams(two.origin, kept.access_token),
  ]
  const form = new URLSearchParams({ token: tokens.refresh_token, client_id: from.clientId })
  const revoked = await fetch(`${rig.issuer}/oauth/revoke`, { method: 'POST', body: form })
  t.equal(revoked.status, 200)
  await Promise.all([allEnded(here), allEnded(there)])
  for (const [kind, stream] of Object.entries(others)) t.ok(await isOpen(stream), kind)
  const again = await stream(`${two.origin}/sse`, { headers: bearer(tokens.access_token) })
  t.equal(again.status, 401, 'the client has to sign in again')
})
