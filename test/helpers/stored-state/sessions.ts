/** Sessions that replicas share: sessions of the virtual server in Redis, and sessions of the proxy. */
import { setImmediate } from 'node:timers/promises'
import type { Test } from 'tap'
import { silentLog } from '../../../runtime/net/index.ts'
import { makeSessionTable } from '../../../runtime/proxy/session/sessions.ts'
import { sessionsInStore } from '../../../runtime/proxy/session/session-store.ts'
import { scanMessage } from '../../../runtime/mcp/index.ts'
import { makeMemoryStore, sealStore, type Store } from '../../../runtime/store/index.ts'
import { startRawBackend } from '../mcp/raw-backend.ts'
import { openSession, post } from '../mcp/wire.ts'
import { missingRedis, type RedisProcess, startRedis, until } from '../redis.ts'
import { startTestVmcp } from '../vmcp/vmcp.ts'
import { dumpStore, recordedSecret, type StoredPart } from './part.ts'

const resource = 'test://watched'

async function startServer(t: Test, redis: RedisProcess, isSealed: boolean) {
  const backend = await startRawBackend({
    capabilities: '{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}',
    tools: () => ['{"name":"say","inputSchema":{"type":"object"}}'],
    responses: {
      'resources/list': () => `{"resources":[{"uri":"${resource}","name":"watched"}]}`,
      'resources/templates/list': () => '{"resourceTemplates":[]}',
      'resources/subscribe': () => '{}',
      'logging/setLevel': () => '{}',
    },
  })
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { sessionStorage: { provider: 'redis', address: redis.addr } },
    { env: isSealed ? { VMCP_SESSION_HMAC_SECRET: recordedSecret } : {} },
  )
  t.teardown(async () => {
    await vmcp.close()
    await backend.close()
  })
  return { vmcp, backend }
}

async function firstEventId(url: string, headers: Record<string, string>): Promise<string> {
  const stop = new AbortController()
  const response = await fetch(url, {
    headers: { ...headers, accept: 'text/event-stream' },
    signal: stop.signal,
  })
  const { value } = (await response.body?.getReader().read()) ?? {}
  stop.abort()
  return /^id: (.+)$/m.exec(Buffer.from(value ?? []).toString())?.[1] ?? ''
}

function virtualServerPart(kind: 'plain' | 'sealed'): StoredPart {
  return {
    name: `vmcp-sessions-${kind}`,
    skip: missingRedis,
    async record(t) {
      const redis = await startRedis()
      t.teardown(() => redis.stop())
      const { vmcp } = await startServer(t, redis, kind === 'sealed')
      const { request, headers } = await openSession(vmcp.url, { capabilities: { elicitation: {} } })
      await request('tools/call', { name: 'raw_say', arguments: {} })
      await request('resources/subscribe', { uri: resource })
      await request('logging/setLevel', { level: 'warning' })
      const eventId = await firstEventId(vmcp.url, headers)
      const keys = redis.cli('keys', '*').split('\n').toSorted()
      const stored = Object.fromEntries(keys.map((key) => [key, redis.cli('get', key)]))
      return { headers, eventId, redis: stored }
    },
    async check(t, recorded) {
      const redis = await startRedis()
      t.teardown(() => redis.stop())
      for (const [key, value] of Object.entries<string>(recorded['redis'])) redis.cli('set', key, value)
      const { vmcp, backend } = await startServer(t, redis, kind === 'sealed')
      const { headers, eventId } = recorded as { headers: Record<string, string>; eventId: string }
      const call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"raw_say"}}'
      t.match((await post(vmcp.url, call, headers)).text, '"content"', 'a call')
      const params = (method: string) =>
        backend.requests.find((request) => request.method === method && request.headers['mcp-session-id'])
          ?.params
      const opened = backend.requests.filter(({ method }) => method === 'initialize')
      t.ok(
        opened.some(({ params }) => JSON.stringify(params['capabilities']).includes('elicitation')),
        'capabilities of the client',
      )
      await until(() => params('resources/subscribe') !== undefined)
      t.match(params('resources/subscribe'), { uri: resource })
      t.match(params('logging/setLevel'), { level: 'warning' })
      t.ok(await firstEventId(vmcp.url, { ...headers, 'last-event-id': eventId }), 'a stream')
    },
  }
}

const owner = 'https://issuer.example\0ada'
const target = 'http://target.example/mcp'
const initialize = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{}}}}'
const subscribe = `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"${resource}"}}`

function proxySessions(inner: Store, kind: 'plain' | 'sealed') {
  const store = kind === 'sealed' ? sealStore(inner, () => [Buffer.from(recordedSecret)]) : inner
  return makeSessionTable(silentLog, { shared: sessionsInStore(store), target })
}

function proxyPart(kind: 'plain' | 'sealed'): StoredPart {
  return {
    name: `proxy-sessions-${kind}`,
    async record() {
      const inner = makeMemoryStore()
      const sessions = proxySessions(inner, kind)
      const session = sessions.open(owner, 'recorded-session', Buffer.from(initialize))
      session.upstreamId = 'session-of-the-target'
      sessions.note(owner, session, scanMessage(Buffer.from(subscribe)))
      await setImmediate()
      return { store: await dumpStore(inner) }
    },
    async check(t, recorded) {
      const inner = makeMemoryStore()
      for (const [key, value] of Object.entries<string>(recorded['store'])) await inner.set(key, value)
      const sessions = proxySessions(inner, kind)
      const session = await sessions.lookUp(owner, 'recorded-session')
      t.equal(session?.upstreamId, 'session-of-the-target')
      t.equal(session?.initBody?.toString(), initialize)
      t.strictSame(
        [...(session?.state ?? [])].map(([key, bytes]) => [key, bytes.toString()]),
        [[`uri ${resource}`, subscribe]],
      )
      t.equal(await sessions.lookUp('https://issuer.example\0eve', 'recorded-session'), undefined)
    },
  }
}

export const sessionParts = [
  virtualServerPart('plain'),
  virtualServerPart('sealed'),
  proxyPart('plain'),
  proxyPart('sealed'),
]
