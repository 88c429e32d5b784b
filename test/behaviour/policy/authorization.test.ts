/**
 * Cedar policies of a virtual server, over HTTP with real tokens: lists, permitted actions and error messages for
 * callers.
 */
import t, { type Test } from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import {
  openSession,
  post,
  stateless,
  statelessStream,
  type WireAnswer,
  type WireSession,
} from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTokenIssuer, type TokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

proves('3.auth.incoming.2', '3.config.incomingAuth.authz.type', '3.config.incomingAuth.authz.policies')

type Ask = (method: string, params?: Record<string, unknown>) => Promise<WireAnswer>

interface Rig {
  readonly url: string
  /** Sends a request as a user, in one of the eras. */
  as(era: Era, subject: string, claims?: Record<string, unknown>): Promise<Ask>
  token(subject: string, claims?: Record<string, unknown>): Promise<string>
}

type Era = 'session' | 'stateless'
const eras: readonly Era[] = ['session', 'stateless']

const cedar = (policies: readonly string[], more: Record<string, unknown> = {}) => ({
  type: 'cedar',
  policies,
  ...more,
})

async function start(t: Test, authz: unknown): Promise<Rig> {
  const [issuer, fixture] = await Promise.all([startTokenIssuer(), startFixture({ era: 'both' })])
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    { aggregation: bareNames('fixture'), incomingAuth: { ...issuer.incomingAuth, authz } },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close(), issuer.close()]))
  return rig(vmcp.url, issuer)
}

function rig(url: string, issuer: TokenIssuer): Rig {
  return {
    url,
    token: (subject, claims) => issuer.token(subject, claims),
    async as(era, subject, claims) {
      const headers = { authorization: `Bearer ${await issuer.token(subject, claims)}` }
      if (era === 'stateless') return (method, params) => stateless(url, method, params, { headers })
      const session: WireSession = await openSession(url, { headers })
      return (method, params) => session.request(method, params)
    },
  }
}

function names(response: WireAnswer, member: string, key: string): unknown[] {
  const items = response.response?.result?.[member] as Record<string, unknown>[] | undefined
  return (items ?? []).map((item) => item[key])
}

const opsOnly = [
  'permit(principal in ServiceGroup::"ops", action == Action::"call_tool", resource == Tool::"echo");',
  'permit(principal in ServiceGroup::"ops", action == Action::"get_prompt", resource == Prompt::"test_simple_prompt");',
  'permit(principal in ServiceGroup::"ops", action == Action::"read_resource", resource) when { resource.uri like "test://static-text" || resource.uri like "test://template/*" };',
]

t.test('lists contain exactly what the caller may use', async (t) => {
  proves('3.config.incomingAuth.authz.groupEntityType')
  const { as } = await start(t, cedar(opsOnly))
  for (const era of eras) {
    const [ada, bob] = await Promise.all([
      as(era, 'ada', { groups: ['ops'] }),
      as(era, 'bob', { groups: ['dev'] }),
    ])
    for (const [method, member, key, mine] of [
      ['tools/list', 'tools', 'name', ['echo']],
      ['prompts/list', 'prompts', 'name', ['test_simple_prompt']],
      ['resources/list', 'resources', 'uri', ['test://static-text']],
      ['resources/templates/list', 'resourceTemplates', 'uriTemplate', ['test://template/{id}/data']],
    ] as const) {
      t.same(names(await ada(method), member, key), mine, `${era} ${method}`)
      const others = await bob(method)
      t.equal(others.status, 200)
      t.same(names(others, member, key), [], `${era} ${method} of somebody else`)
    }
  }
})

t.test('permitted requests work, and denied ones get 403 with their own message', async (t) => {
  const { as } = await start(t, cedar(opsOnly))
  for (const era of eras) {
    const ada = await as(era, 'ada', { groups: ['ops'] })
    for (const [method, params] of [
      ['tools/call', { name: 'echo', arguments: { a: 1 } }],
      ['prompts/get', { name: 'test_simple_prompt' }],
      ['resources/read', { uri: 'test://static-text' }],
      ['resources/read', { uri: 'test://template/7/data' }],
      [
        'completion/complete',
        { ref: { type: 'ref/prompt', name: 'test_simple_prompt' }, argument: { name: 'a', value: 'p' } },
      ],
    ] as const) {
      const response = await ada(method, params)
      t.equal(response.status, 200, `${era} ${method}`)
      t.ok(response.response?.result, response.text)
    }
    for (const [method, params, message] of [
      ['tools/call', { name: 'wait' }, 'call denied by authorization policy'],
      ['prompts/get', { name: 'test_prompt_with_image' }, 'prompt denied by authorization policy'],
      ['resources/read', { uri: 'test://static-binary' }, 'read denied by authorization policy'],
      [
        'completion/complete',
        { ref: { type: 'ref/resource', uri: 'test://other/{id}' }, argument: { name: 'id', value: 'p' } },
        'read denied by authorization policy',
      ],
    ] as const) {
      const response = await ada(method, params)
      t.equal(response.status, 403, `${era} ${method}`)
      t.strictSame(response.response?.error, { code: 403, message }, response.text)
      t.ok(response.response?.id !== undefined && response.response.id !== null, 'with the id of the request')
    }
  }
})

t.test('unknown items are rejected exactly like forbidden ones', async (t) => {
  const { as } = await start(t, cedar(opsOnly))
  for (const era of eras) {
    const ada = await as(era, 'ada', { groups: ['ops'] })
    for (const [method, forbidden, absent] of [
      ['tools/call', { name: 'wait' }, { name: 'no_such_tool' }],
      ['tools/call', { name: 'test_mirrored_header', arguments: { region: 'eu' } }, { name: 'no_such_tool' }],
      ['prompts/get', { name: 'test_prompt_with_image' }, { name: 'no_such_prompt' }],
      ['resources/read', { uri: 'test://static-binary' }, { uri: 'test://no-such-thing' }],
    ] as const) {
      const [one, other] = [await ada(method, forbidden), await ada(method, absent)]
      t.equal(one.status, 403)
      t.equal(one.status, other.status)
      t.strictSame(one.response?.error, other.response?.error, `${era} ${method}`)
    }
  }
})

t.test('a permitted name without an item is a request error', async (t) => {
  const { as } = await start(t, cedar(['permit(principal, action, resource);']))
  for (const era of eras) {
    const ada = await as(era, 'ada')
    t.match((await ada('tools/call', { name: 'no_such_tool' })).response?.error, { code: -32602 }, era)
  }
})

t.test('arguments and hints affect the decision', async (t) => {
  const issuer = await startTokenIssuer()
  const tools = [
    '{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}',
    '{"name":"write","inputSchema":{"type":"object"}}',
  ]
  const backend = await startRawBackend({ tools: () => tools })
  const authz = cedar([
    'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
    'permit(principal, action == Action::"call_tool", resource == Tool::"write") when { context has arg_path && context.arg_path like "/tmp/*" };',
  ])
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { aggregation: bareNames('raw'), incomingAuth: { ...issuer.incomingAuth, authz } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  for (const era of eras) {
    const ada = await rig(vmcp.url, issuer).as(era, 'ada')
    const statusOf = async (name: string, args: unknown = {}) =>
      (await ada('tools/call', { name, arguments: args })).status
    t.equal(await statusOf('look'), 200)
    t.equal(await statusOf('write', { path: '/tmp/x' }), 200)
    t.equal(await statusOf('write', { path: '/etc/x' }), 403)
    t.equal(await statusOf('write'), 403)
    t.equal(await statusOf('no_such_tool'), 403)
    t.same(names(await ada('tools/list'), 'tools', 'name'), ['look'], 'a list has no arguments')
  }
  t.same(
    backend.requests.filter(({ method }) => method === 'tools/call').map(({ params }) => params['arguments']),
    [{}, { path: '/tmp/x' }, {}, { path: '/tmp/x' }],
    'no rejected call reached the backend',
  )
})

t.test('a forbidden tool that appears later is forbidden from its first call', async (t) => {
  const issuer = await startTokenIssuer()
  const tools = ['{"name":"a","inputSchema":{"type":"object"}}']
  const backend = await startRawBackend({ tools: () => tools })
  const authz = cedar([
    'permit(principal, action, resource);',
    'forbid(principal, action, resource) when { resource has destructiveHint && resource.destructiveHint };',
  ])
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { aggregation: bareNames('raw'), incomingAuth: { ...issuer.incomingAuth, authz } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const ada = await rig(vmcp.url, issuer).as('session', 'ada')
  t.equal((await ada('tools/call', { name: 'a' })).status, 200)
  tools.push('{"name":"drop","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}')
  for (let i = 0; i < 3; i++) t.ok((await ada('tools/call', { name: 'drop' })).response?.error)
  t.same(
    backend.requests.filter(({ method }) => method === 'tools/call').map(({ params }) => params['name']),
    ['a'],
  )
})

t.test('subscriptions require permission to read', async (t) => {
  const { as, url, token } = await start(
    t,
    cedar(['permit(principal == Client::"ada", action, resource == Resource::"test://watched-resource");']),
  )
  const [ada, bob] = await Promise.all([as('session', 'ada'), as('session', 'bob')])
  const uri = 'test://watched-resource'
  t.equal((await ada('resources/subscribe', { uri })).status, 200)
  for (const method of ['resources/subscribe', 'resources/unsubscribe'])
    t.equal((await bob(method, { uri })).status, 403, method)
  const listen = async (subject: string) =>
    statelessStream(
      url,
      'subscriptions/listen',
      { notifications: { resourceSubscriptions: [uri] } },
      { headers: { authorization: `Bearer ${await token(subject)}` } },
    )
  const mine = await listen('ada')
  t.same((await mine.next()).params?.['notifications'], { resourceSubscriptions: [uri] })
  mine.close()
  const theirs = await listen('bob')
  t.equal(theirs.status, 403)
  theirs.close()
})

t.test('a lost session: 403 for denied requests, otherwise 404, so that clients start again', async (t) => {
  const policies = [
    ...opsOnly,
    'permit(principal, action == Action::"call_tool", resource == Tool::"wait") when { resource has readOnlyHint };',
  ]
  const { url, token } = await start(t, cedar(policies))
  const headers = {
    authorization: `Bearer ${await token('ada', { groups: ['ops'] })}`,
    'mcp-session-id': '00000000-0000-4000-8000-000000000000',
  }
  const statusOf = async (name: string) =>
    (
      await post(
        url,
        JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } }),
        headers,
      )
    ).status
  t.equal(await statusOf('test_simple_text'), 403)
  t.equal(await statusOf('echo'), 404)
  t.equal(await statusOf('wait'), 404, 'it depends on the tool’s hints')
})

t.test('other protocol methods need no permission', async (t) => {
  const { as } = await start(t, cedar(['forbid(principal, action, resource);']))
  const session = await as('session', 'ada')
  for (const [method, params] of [
    ['ping', {}],
    ['logging/setLevel', { level: 'error' }],
    ['tools/list', {}],
  ] as const)
    t.equal((await session(method, params)).status, 200, method)
  const ada = await as('stateless', 'ada')
  t.equal((await ada('server/discover')).status, 200)
  t.match(
    (await session('tools/invoke')).response?.error,
    { code: -32601 },
    'an unknown method is reported as unknown',
  )
})

t.test('none switches authorization off, and anonymous callers are checked like all callers', async (t) => {
  const { as } = await start(t, { type: 'none' })
  t.equal((await (await as('session', 'ada'))('tools/call', { name: 'echo' })).status, 200)
  const fixture = await startFixture()
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    {
      aggregation: bareNames('fixture'),
      incomingAuth: {
        type: 'anonymous',
        authz: cedar(['permit(principal == Client::"anonymous", action, resource == Tool::"echo");']),
      },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const session = await openSession(vmcp.url)
  t.equal((await session.request('tools/call', { name: 'echo' })).status, 200)
  t.equal((await session.request('tools/call', { name: 'wait' })).status, 403)
})

t.test('changed policies take effect at once, and unusable ones change nothing', async (t) => {
  const fixture = await startFixture()
  const config = (...policies: string[]) =>
    vmcpConfig(
      { fixture: fixture.url },
      { aggregation: bareNames('fixture'), incomingAuth: { type: 'anonymous', authz: cedar(policies) } },
    )
  const incomingAuth = config('permit(principal, action, resource);').incomingAuth
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    { aggregation: bareNames('fixture'), incomingAuth },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const session = await openSession(vmcp.url)
  const call = async () => (await session.request('tools/call', { name: 'echo' })).status
  t.equal(await call(), 200)
  vmcp.reload(config('forbid(principal, action, resource);'))
  t.equal(await call(), 403)
  t.same(names(await session.request('tools/list'), 'tools', 'name'), [])
  t.throws(() => vmcp.reload(config('permit(principal, action, resource);', 'nonsense')), {
    code: 'INVALID_CONFIG',
    message: /policies\[1\]/,
  })
  t.equal(await call(), 403)
  vmcp.reload(config('permit(principal, action, resource);'))
  t.equal(await call(), 200)
})

t.test('a server with an unusable policy or entity does not start', async (t) => {
  const start = (authz: unknown) => startTestVmcp({}, { incomingAuth: { type: 'anonymous', authz } })
  await t.rejects(start(cedar(['permit(principal, action, resource);', 'permit('])), {
    code: 'INVALID_CONFIG',
    message: /policies\[1\]: is not a Cedar policy/,
  })
  await t.rejects(start(cedar(['permit(principal, action, resource);'], { entitiesJson: '{}' })), {
    code: 'INVALID_CONFIG',
    message: /entitiesJson: must be a JSON list/,
  })
})
