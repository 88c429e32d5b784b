/** call_tool: what passes unchanged, which mistakes are accepted, and the errors for the model. */
import t from 'tap'
import { openSession, post, stateless } from '../../../helpers/mcp/wire.ts'
import { call, find, start, textOf } from './rig.ts'

t.test('call_tool: parameters and results pass byte for byte', async (t) => {
  const parameters = '{"n":12345678901234567890,"f":1.50,"u":"\\u00e9"}'
  const result = '{"content":[],"structuredContent":{"big":98765432109876543210,"x":2.50}}'
  const { url, backend } = await start(t, {}, { responses: { 'tools/call': () => result } })
  const session = await openSession(url)
  const response = await post(
    url,
    `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"call_tool","_meta":{"x":1},"arguments":{"tool_name":"exact","parameters":${parameters}}}}`,
    session.headers,
  )
  t.equal(response.text, `{"jsonrpc":"2.0","id":9,"result":${result}}`)
  const { body } = backend.requests.findLast(({ method }) => method === 'tools/call') ?? { body: '' }
  t.match(body, `"arguments":${parameters}`)
  t.match(body, '"name":"exact"')
  t.match(body, '"x":1', 'other members of the request are forwarded')
  t.notMatch(body, 'tool_name')
})

t.test('call_tool: accepts common mistakes of models in its arguments', async (t) => {
  const { url } = await start(t)
  for (const args of [
    { tool_name: 'weather', parameters: { a: 1 } },
    { Tool_Name: 'weather', PARAMETERS: { a: 1 } },
    { parameters: { tool_name: 'weather', a: 1 } },
    { tool_name: '', parameters: { tool_name: 'weather', a: 1 } },
  ])
    t.equal(textOf(await call(url, args)), '{"a":1}', JSON.stringify(args))
  t.equal(textOf(await call(url, { tool_name: 'weather' })), '{}')
  t.equal(textOf(await call(url, { tool_name: 'weather', parameters: null })), '{}')
  const kept = { tool_name: 'weather', parameters: { tool_name: 'other' } }
  t.equal(textOf(await call(url, kept)), '{"tool_name":"other"}', 'a parameter with that name is kept')
})

t.test('call_tool: reports errors in a form that the model can use', async (t) => {
  const { url, backend } = await start(t)
  for (const [args, said] of [
    [undefined, /^!call_tool failed: tool_name is required: expected .*got no fields/],
    [{ name: 'weather', arguments: {} }, /^!call_tool failed: tool_name is required.*"name", "arguments"/],
    [{ tool_name: 7, parameters: {} }, /^!call_tool failed: invalid arguments: tool_name must be a string/],
    [{ tool_name: 'weather', parameters: [] }, /^!call_tool failed: parameters must be an object/],
    [{ tool_name: 'weather', TOOL_NAME: 'exact' }, /^!call_tool failed: invalid arguments: duplicate field/],
    [{ tool_name: 'no_such_tool', parameters: {} }, /^!tool not found: no_such_tool$/],
    [{ tool_name: 'call_tool', parameters: { tool_name: 'weather' } }, /^!tool not found: call_tool$/],
  ] as const)
    t.match(textOf(await call(url, args)), said)
  t.notOk(backend.requests.some(({ method }) => method === 'tools/call'))
  t.match(textOf(await find(url, '')), /"tools":\[\]/)
  for (const [args, said] of [
    [{}, /^!find_tool failed: tool_description is required/],
    [{ tool_description: 1 }, /^!find_tool failed: invalid arguments: tool_description must be a string/],
    [
      { tool_description: 'x', tool_keywords: [1] },
      /^!find_tool failed: invalid arguments: tool_keywords must be/,
    ],
  ] as const)
    t.match(textOf(await stateless(url, 'tools/call', { name: 'find_tool', arguments: args })), said)
})

t.test('call_tool: failing tools and backends give the same response as a direct call', async (t) => {
  const { url, backend } = await start(
    t,
    {},
    {
      responses: {
        'tools/call': ({ params, id, res }) => {
          if (params['name'] === 'weather')
            return '{"content":[{"type":"text","text":"rain"}],"isError":true}'
          res.end(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32050,"message":"own"}}`)
          return undefined
        },
      },
    },
  )
  t.equal(textOf(await call(url, { tool_name: 'weather', parameters: {} })), '!rain')
  t.match((await call(url, { tool_name: 'exact', parameters: {} })).response?.error, {
    code: -32050,
    message: 'own',
  })
  await backend.close()
  t.match(textOf(await call(url, { tool_name: 'weather', parameters: {} })), /^!/)
})
