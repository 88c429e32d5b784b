/** MCP requests that the policies decide, errors for denied clients, and filtered lists. */
import t from 'tap'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { makeCaller } from '../../../runtime/net/index.ts'
import { type Facts, type Gate, makeAuthorizer, makeGate } from '../../../runtime/policy/index.ts'
import type { CheckOptions, GateOptions } from '../../../runtime/policy/gate.ts'
import { proves } from '../../helpers/proves.ts'

const ada = makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada', groups: ['ops'] } })

function gateOf(policies: readonly string[], options: Partial<GateOptions> = {}): Gate {
  const authorizer = makeAuthorizer(
    { policies, entitiesJson: '[]', groupEntityType: 'ServiceGroup' },
    { serverName: 'front' },
  )
  return makeGate(authorizer, { unknownMethods: 'refuse', ...options })
}

function factsWith<T extends string>(hints: Facts['hints'] | T | undefined): Facts | T | undefined {
  return typeof hints === 'object' ? { hints, origin: { backend: 'b', original: 'o' } } : hints
}

const paramsOf = (value: unknown): JsonObject => new JsonObject(Buffer.from(JSON.stringify(value)))
const nothing = gateOf(['forbid(principal, action, resource);'])
const everything = gateOf(['permit(principal, action, resource);'])

const guarded = [
  ['tools/call', { name: 'x' }, 'call denied by authorization policy'],
  ['prompts/get', { name: 'x' }, 'prompt denied by authorization policy'],
  ['resources/read', { uri: 'x:' }, 'read denied by authorization policy'],
  ['resources/subscribe', { uri: 'x:' }, 'read denied by authorization policy'],
  ['resources/unsubscribe', { uri: 'x:' }, 'read denied by authorization policy'],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'x' } },
    'prompt denied by authorization policy',
  ],
  [
    'completion/complete',
    { ref: { type: 'ref/resource', uri: 'x:' } },
    'read denied by authorization policy',
  ],
  [
    'subscriptions/listen',
    { notifications: { resourceSubscriptions: ['x:'] } },
    'read denied by authorization policy',
  ],
] as const

t.test('check: a guarded request is passed on if permitted, or rejected with its own message', async (t) => {
  proves('3.auth.incoming.2')
  for (const [method, params, message] of guarded) {
    await t.resolves(everything.check(ada, method, paramsOf(params)), method)
    await t.rejects(nothing.check(ada, method, paramsOf(params)), { code: 'FORBIDDEN', message }, method)
  }
})

t.test('check: all other methods are allowed without a decision', async (t) => {
  for (const method of [
    'initialize',
    'ping',
    'logging/setLevel',
    'server/discover',
    'tools/list',
    'prompts/list',
    'resources/list',
    'resources/templates/list',
    'notifications/initialized',
    'notifications/cancelled',
  ])
    await t.resolves(nothing.check(ada, method, paramsOf({})), method)
  await t.resolves(
    nothing.check(ada, 'subscriptions/listen', paramsOf({ notifications: { toolsListChanged: true } })),
  )
})

t.test('check: methods without an action are rejected or passed on, as configured', async (t) => {
  await t.rejects(everything.check(ada, 'tools/invoke', paramsOf({})), { code: 'FORBIDDEN' })
  const passing = gateOf(['forbid(principal, action, resource);'], { unknownMethods: 'pass' })
  await t.resolves(passing.check(ada, 'tools/invoke', paramsOf({})))
})

t.test('check: a request without a valid target is rejected', async (t) => {
  for (const [method, text] of [
    ['tools/call', '{}'],
    ['tools/call', '{"name":["x"]}'],
    ['prompts/get', '{"name":1}'],
    ['resources/read', '{"uri":null}'],
    ['completion/complete', '{}'],
    ['completion/complete', '{"ref":{"type":"ref/tool","name":"x"}}'],
    ['completion/complete', '{"ref":{"type":"ref/prompt","uri":"x:"}}'],
    ['completion/complete', '{"ref":{"type":"ref/prompt","name":"a","name":"b"}}'],
    ['subscriptions/listen', '{"notifications":{"resourceSubscriptions":"x:"}}'],
    ['subscriptions/listen', '{"notifications":{"resourceSubscriptions":[1]}}'],
  ] as const) {
    await t.rejects(
      everything.check(ada, method, new JsonObject(Buffer.from(text))),
      { code: 'INVALID_PARAMS' },
      `${method} ${text}`,
    )
  }
})

t.test('check: all decisions of one request must be permits', async (t) => {
  const gate = gateOf(['permit(principal, action, resource == Resource::"a:");'])
  const listen = (uris: readonly string[]) =>
    gate.check(ada, 'subscriptions/listen', paramsOf({ notifications: { resourceSubscriptions: uris } }))
  await t.resolves(listen(['a:']))
  await t.rejects(listen(['a:', 'b:']), { code: 'FORBIDDEN' })
})

t.test('check: hints are looked up only when an applicable policy reads them', async (t) => {
  const gate = gateOf([
    'permit(principal, action, resource);',
    'forbid(principal, action == Action::"call_tool", resource) when { resource has destructiveHint && resource.destructiveHint };',
  ])
  const asked: string[] = []
  const call = (name: string, hints: Facts['hints'] | 'no such thing' | 'later' | undefined) =>
    gate.check(ada, 'tools/call', paramsOf({ name }), {
      factsOf: ({ id }) => {
        asked.push(id)
        return Promise.resolve(factsWith(hints))
      },
    })
  await t.resolves(call('a', {}))
  await t.rejects(call('b', { destructiveHint: true }), { code: 'FORBIDDEN' })
  await t.rejects(call('c', undefined), { code: 'FORBIDDEN' }, 'without facts')
  await t.rejects(call('d', 'no such thing'), { code: 'INVALID_PARAMS', message: 'tool "d" not found' })
  await t.resolves(call('e', 'later'), 'it is checked again later')
  t.strictSame(asked, ['a', 'b', 'c', 'd', 'e'])
  await gate.check(ada, 'prompts/get', paramsOf({ name: 'f' }), {
    factsOf: () => t.fail('no policy reads the facts') as never,
  })
})

t.test('check: shadow policies look up nothing for a rejected request, and reject none', async (t) => {
  const shadowOf = (policies: readonly string[]) =>
    makeAuthorizer({ policies, entitiesJson: '[]', groupEntityType: 'ServiceGroup' }, { serverName: 'front' })
  const shadow = shadowOf(['permit(principal, action, resource in Backend::"b");'])
  const gate = gateOf(['permit(principal, action, resource == Tool::"a");'], { shadow })
  const asked: string[] = []
  const shadows: unknown[] = []
  const facts: Facts = { hints: {}, origin: { backend: 'b', original: 'o' } }
  const call = (name: string, options: CheckOptions = {}) =>
    gate.check(ada, 'tools/call', paramsOf({ name }), {
      factsOf: ({ id }) => {
        asked.push(id)
        return Promise.resolve(facts)
      },
      decided: ({ shadow }) => shadows.push(shadow?.allowed),
      ...options,
    })
  await t.resolves(call('a'))
  await t.rejects(call('b'), { code: 'FORBIDDEN' })
  await t.rejects(call('c', { peekFacts: () => facts }), { code: 'FORBIDDEN' })
  t.strictSame(asked, ['a'])
  t.strictSame(
    shadows,
    [true, undefined, true],
    'shadow policies make no decision without the facts that they read',
  )
  await t.rejects(call('d', { factsOf: () => 'later' }), { code: 'FORBIDDEN' }, 'nothing is put off')
  await t.resolves(call('a', { factsOf: () => Promise.reject(new Error('down')) }))
})

t.test('check: under default deny, a missing tool is rejected like an existing one', async (t) => {
  const gate = gateOf([
    'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
  ])
  const call = (hints: Facts['hints'] | 'no such thing' | undefined) =>
    gate.check(ada, 'tools/call', paramsOf({ name: 'x' }), { factsOf: () => factsWith(hints) })
  const refusal = { code: 'FORBIDDEN', message: 'call denied by authorization policy' }
  await t.rejects(call({ readOnlyHint: false }), refusal)
  await t.rejects(call('no such thing'), refusal)
  await t.rejects(call(undefined), refusal)
})

t.test('check: a granted tool needs no permit, but a policy can forbid it', async (t) => {
  const granted = (tool: string): boolean => tool === 'execute_tool_script'
  const call = (gate: Gate, name: string) => gate.check(ada, 'tools/call', paramsOf({ name }))
  const permitOther = gateOf(['permit(principal, action, resource == Tool::"other");'], { granted })
  await t.resolves(call(permitOther, 'execute_tool_script'))
  await t.rejects(call(permitOther, 'x'), { code: 'FORBIDDEN' })
  const forbidding = gateOf(
    [
      'permit(principal, action, resource);',
      'forbid(principal, action, resource == Tool::"execute_tool_script");',
    ],
    { granted },
  )
  await t.rejects(call(forbidding, 'execute_tool_script'), { code: 'FORBIDDEN' })
})

const opsOnly = 'permit(principal in ServiceGroup::"ops", action, resource)'

t.test('filter: keeps the bytes of the remaining items and of everything else', async (t) => {
  const gate = gateOf([`${opsOnly} unless { resource.name == "b" };`])
  const a = '{ "name" : "a", "big":12345678901234567890, "x":"\\u0041" }'
  const c = '{"annotations":{"title":"C"},"name":"c"}'
  const page = Buffer.from(
    `{"_meta":{"k": 1.0},"tools":[${a}, {"name":"b"} ,${c}],"nextCursor":"n","ttlMs":0}`,
  )
  const filtered = await gate.filter(ada, 'tools/list', page)
  t.equal(filtered.toString(), `{"_meta":{"k": 1.0},"tools":[${a},${c}],"nextCursor":"n","ttlMs":0}`)
  const again = await gate.filter(ada, 'tools/list', page)
  t.equal(again, filtered, 'the filtered page is created once')
})

t.test('filter: a list without removed items is the same buffer', async (t) => {
  const page = Buffer.from('{"tools":[{"name":"a"}]}')
  t.equal(await everything.filter(ada, 'tools/list', page), page)
  const result = Buffer.from('{"content":[]}')
  t.equal(await nothing.filter(ada, 'tools/call', result), result, 'no list')
})

t.test('filter: each list is checked with the action of its items', async (t) => {
  const gate = gateOf([
    'permit(principal, action == Action::"call_tool", resource == Tool::"a");',
    'permit(principal, action == Action::"get_prompt", resource == Prompt::"a");',
    'permit(principal, action == Action::"read_resource", resource == Resource::"a:");',
    'permit(principal, action == Action::"read_resource", resource == Resource::"a:{id}");',
  ])
  for (const [method, member, key, mine, other] of [
    ['tools/list', 'tools', 'name', 'a', 'b'],
    ['prompts/list', 'prompts', 'name', 'a', 'b'],
    ['resources/list', 'resources', 'uri', 'a:', 'b:'],
    ['resources/templates/list', 'resourceTemplates', 'uriTemplate', 'a:{id}', 'b:{id}'],
  ] as const) {
    const page = Buffer.from(JSON.stringify({ [member]: [{ [key]: other }, { [key]: mine }] }))
    t.strictSame(
      JSON.parse((await gate.filter(ada, method, page)).toString()),
      { [member]: [{ [key]: mine }] },
      method,
    )
  }
})

t.test('filter: hints and missing arguments have the same effect as in a call', async (t) => {
  const gate = gateOf([
    'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
    'permit(principal, action, resource == Tool::"pay") when { context.arg_sum < 10 };',
  ])
  const tools = [
    { name: 'look', annotations: { readOnlyHint: true } },
    { name: 'write', annotations: { readOnlyHint: false } },
    { name: 'odd', annotations: { readOnlyHint: 'true' } },
    { name: 'pay' },
  ]
  const { tools: left } = JSON.parse(
    (await gate.filter(ada, 'tools/list', Buffer.from(JSON.stringify({ tools })))).toString(),
  ) as { tools: { name: string }[] }
  t.strictSame(
    left.map(({ name }) => name),
    ['look'],
  )
})

t.test('filter: items without a readable name are removed', async (t) => {
  const page = Buffer.from('{"tools":[{"name":"a"},{"name":1},7,{},{"name":"b","name":"c"}]}')
  t.equal((await everything.filter(ada, 'tools/list', page)).toString(), '{"tools":[{"name":"a"}]}')
})

t.test('filter: a malformed list result is rejected', async (t) => {
  for (const text of [
    '{}',
    '{"tools":{"name":"a"}}',
    '{"tools":[],"tools":[{"name":"a"}]}',
    '[]',
    '{"tools":[}',
  ])
    await t.rejects(
      everything.filter(ada, 'tools/list', Buffer.from(text)),
      { code: 'BACKEND_PROTOCOL' },
      text,
    )
})

t.test("filter: callers do not see each other's views", async (t) => {
  const gate = gateOf([`${opsOnly};`])
  const bob = makeCaller({ issuer: 'i', subject: 'bob', claims: { sub: 'bob' } })
  const page = Buffer.from('{"tools":[{"name":"a"}]}')
  t.equal((await gate.filter(ada, 'tools/list', page)).toString(), page.toString())
  t.equal((await gate.filter(bob, 'tools/list', page)).toString(), '{"tools":[]}')
})

t.test('filter: a long list does not block other work', async (t) => {
  const gate = gateOf(['permit(principal, action, resource) when { resource.name like "*1" };'])
  const tools = Array.from({ length: 1000 }, (_, at) => ({ name: `tool_${at}` }))
  let turns = 0
  let done = false
  const count = (): void => {
    turns++
    if (!done) setImmediate(count)
  }
  setImmediate(count)
  const filtered = await gate.filter(ada, 'tools/list', Buffer.from(JSON.stringify({ tools })))
  done = true
  t.equal((JSON.parse(filtered.toString()) as { tools: unknown[] }).tools.length, 100)
  t.ok(turns > 1, `other work had ${turns} turns`)
  const gone = AbortSignal.abort(new Error('gone'))
  const fresh = gateOf(['permit(principal, action, resource) when { resource.name like "*2" };'])
  await t.rejects(fresh.filter(ada, 'tools/list', Buffer.from(JSON.stringify({ tools })), { signal: gone }), {
    message: 'gone',
  })
})
