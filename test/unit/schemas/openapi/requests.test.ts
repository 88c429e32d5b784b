/** Requests from arguments: the attacks on paths, queries, headers and bodies. */
import t from 'tap'
import { exactJson, type Fields } from '../../../../schemas/index.ts'
import { buildRequest } from '../../../../schemas/openapi/index.ts'
import { json, outcomeOf, query, toolFor } from '../../../helpers/openapi/documents.ts'

const id = { name: 'id', in: 'path', required: true, schema: {} }
const header = (name: string, more: object = {}) => ({ name, in: 'header', schema: {}, ...more })
const required = { required: true }
const invalid = { code: 'INVALID_PARAMS' }

await t.test('requests: a path value cannot leave its segment', async (t) => {
  const { request } = toolFor({ parameters: [id] }, { at: 'get /a/{id}/b' })
  const refused = [
    '',
    '.',
    '..',
    '../..',
    'a/b',
    'a\\b',
    '%2e%2e',
    '%2E.',
    'a%2fb',
    '%5C',
    'a\u0000',
    'a\nb',
    '\u007f',
    '\ud800',
  ]
  for (const value of [...refused, [], {}, [''], ['a', '..'], { '..': 'a' }, null, [[1]], Number.NaN])
    t.throws(() => buildRequest(request, { id: value }), invalid, JSON.stringify(value))
  const kept: readonly [unknown, string][] = [
    ['a?b#c', 'a%3Fb%23c'],
    ['a;b=c', 'a%3Bb%3Dc'],
    ['%', '%25'],
    ["!'()*", '%21%27%28%29%2A'],
    ['...', '...'],
    ['é', '%C3%A9'],
    [12345678901234567890n, '12345678901234567890'],
    [true, 'true'],
  ]
  for (const [value, text] of kept) t.equal(buildRequest(request, { id: value }).path, `/a/${text}/b`)
})

await t.test('requests: the final path has the shape of the template', async (t) => {
  const name = { ...id, name: 'name' }
  const { request } = toolFor({ parameters: [{ ...id, style: 'label' }, name] }, { at: 'get /a/{id}{name}' })
  t.equal(buildRequest(request, { id: 'x', name: 'y' }).path, '/a/.xy')
  const dots = toolFor({ parameters: [id] }, { at: 'get /a/.{id}' }).request
  t.throws(() => buildRequest(dots, { id: '%2e' }), invalid)
  for (const path of [
    '/a/../b',
    '/a/./b',
    '//host/a',
    '/a?x=1',
    '/a#b',
    '/a\\b',
    '/a%2fb',
    '/a b',
    '/%2e%2e/a',
  ])
    t.equal(outcomeOf({}, { at: `get ${path}`.replace(' b', '\u00a0b') }).reason, 'path_template', path)
  t.equal(outcomeOf({}, { at: 'get /a/{id}' }).reason, 'path_template', 'no parameter for the braces')
  t.ok(toolFor({ parameters: [id] }, { at: 'get /v1/things:{id}/' }))
})

await t.test('requests: a plan that was changed in storage cannot leave the template', async (t) => {
  const { request } = toolFor({ parameters: [id] }, { at: 'get /a/{id}/b' })
  const path = (...parts: readonly ({ readonly text: string } | { readonly parameter: string })[]) =>
    buildRequest({ ...request, path: parts }, { id: 'x' })
  t.equal(path({ text: '/c/' }, { parameter: 'id' }).path, '/c/x')
  t.throws(() => path({ text: '/a/../' }, { parameter: 'id' }), { message: /change the path/ })
  t.throws(() => path({ text: '//host/' }, { parameter: 'id' }), { message: /change the path/ })
  t.throws(() => path({ text: '/a?' }, { parameter: 'id' }), { message: /change the path/ })
  t.throws(() => path({ text: '/a/' }, { parameter: 'other' }), { message: /change the path/ })
})

await t.test('requests: a query value cannot add a parameter', async (t) => {
  const { request } = toolFor({ parameters: [query('q'), query('o', { schema: { type: 'object' } })] })
  t.equal(buildRequest(request, { q: 'a&b=c#d+e f' }).query, 'q=a%26b%3Dc%23d%2Be%20f')
  t.equal(buildRequest(request, { o: { 'a&b=': '1' } }).query, 'a%26b%3D=1')
  t.throws(
    () => buildRequest(request, { o: { q: 'x' } }),
    invalid,
    'a member cannot replace another parameter',
  )
  for (const name of ['Q', 'q[]', 'q[a]', 'Q[]'])
    t.throws(() => buildRequest(request, { o: { [name]: 'x' } }), invalid, name)
  const deep = toolFor({ parameters: [query('f', { style: 'deepObject' }), query('f[a]')] }).request
  t.equal(buildRequest(deep, { f: { b: 1 }, f_a: 2 }).query, 'f%5Bb%5D=1&f%5Ba%5D=2')
  for (const name of ['a', 'A', 'b][c', '['])
    t.throws(() => buildRequest(deep, { f: { [name]: 1 } }), invalid, name)
  t.throws(() => buildRequest(request, { q: '\udc00' }), invalid)
  t.throws(() => buildRequest(request, { o: { '\udc00': 1 } }), invalid)
})

await t.test('requests: a header value cannot add a header', async (t) => {
  const { request } = toolFor({ parameters: [header('X-A')] })
  t.same(buildRequest(request, { 'X-A': ['a', 1] }).headers, [['X-A', 'a,1']])
  for (const value of ['a\r\nb: c', 'a\nb', 'a\u0000', '\u20ac', 'x'.repeat(9_000)])
    t.throws(() => buildRequest(request, { 'X-A': value }), invalid)
})

await t.test('requests: a document cannot set restricted headers', async (t) => {
  for (const name of [
    'Host',
    'X-Forwarded-For',
    'Cookie',
    'DPoP',
    'Mcp-Session-Id',
    'Transfer-Encoding',
    'Proxy-A',
    'X-HTTP-Method-Override',
    'x-http-method',
    'X-Method-Override',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Host',
    'X-HTTP-Host-Override',
  ]) {
    const { tool, notices } = outcomeOf({ parameters: [header(name)] })
    t.same(tool?.inputSchema['properties'], {}, name)
    t.match(notices, [{ code: 'restricted_header' }])
    t.equal(outcomeOf({ parameters: [header(name, required)] }).reason, 'restricted_header', name)
  }
  for (const name of ['Authorization', 'accept', 'Content-Type'])
    t.same(
      toolFor({ parameters: [header(name, required)] }).inputSchema['properties'],
      {},
      'OpenAPI ignores these',
    )
  t.equal(outcomeOf({ parameters: [header('a b')] }).reason, 'parameter')
})

await t.test('requests: arguments cannot set the credential or replace the method', async (t) => {
  const parameters = [query('filter', { schema: { type: 'object' } })]
  const settings = { apiKeyQuery: { header: 'X-Key', parameter: 'api_key' } }
  const hidden = ['api_key', 'Api_Key', 'api_key[]'].map((name) => query(name, required))
  const { request, inputSchema } = toolFor(
    { parameters: [...parameters, ...hidden, header('x-key', required)] },
    {},
    settings,
  )
  t.same(Object.keys(inputSchema['properties'] ?? {}), ['filter'])
  for (const name of ['api_key', 'API_KEY', 'api_key[]', 'api_key[a]', '_method', '_METHOD'])
    t.throws(() => buildRequest(request, { filter: { [name]: 'x' } }), invalid, name)
  t.equal(buildRequest(request, { filter: { api: 'x' } }).query, 'api=x')
  const open = toolFor({ parameters }).request
  t.throws(() => buildRequest(open, { filter: { _method: 'DELETE' } }), invalid)
  t.equal(buildRequest(open, { filter: { api_key: 'x' } }).query, 'api_key=x')
})

await t.test('requests: the values of paths, queries and headers have a maximum length', async (t) => {
  const parameters = [id, query('q'), query('o', { schema: { type: 'object' } }), header('X-A')]
  const { request } = toolFor({ parameters }, { at: 'get /a/{id}' })
  const text = 'x'.repeat(16_384)
  t.equal(buildRequest(request, { id: text, q: text }).query, `q=${text}`)
  const list = Array.from({ length: 1_000 }, () => 1)
  t.equal(buildRequest(request, { id: 1, q: list }).query.length, 3_999)
  for (const args of [
    { id: `${text}x` },
    { id: 1, q: `${text}x` },
    { id: 1, q: [text, 'x'] },
    { id: 1, q: [...list, 1] },
    { id: 1, o: { a: text } },
    { id: 1, o: Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [n, 1])) },
  ])
    t.throws(() => buildRequest(request, args), { message: /must not have more than/ })
})

await t.test('requests: missing and unknown arguments are errors', async (t) => {
  const { request } = toolFor({ parameters: [id, query('q', { required: true })] }, { at: 'get /a/{id}' })
  t.throws(() => buildRequest(request, { id: 'a' }), {
    ...invalid,
    message: 'invalid argument "q": is required',
  })
  t.throws(() => buildRequest(request, { id: 'a', q: null }), invalid)
  t.throws(() => buildRequest(request, { id: 'a', q: 'b', toString: 1 }), {
    message: /unknown arguments: "toString"/,
  })
})

await t.test('requests: a body keeps exact integers and unusual names', async (t) => {
  const { request } = toolFor(
    { requestBody: { required: true, ...json({ properties: { n: {}, constructor: {} } }) } },
    { at: 'post /things' },
  )
  const args = exactJson('{"n": 9007199254740993, "constructor": {"a": [1]}}') as Fields
  t.equal(buildRequest(request, args).body, '{"n":9007199254740993,"constructor":{"a":[1]}}')
  const found = toolFor({ parameters: [query('q')] }).request
  t.equal(buildRequest(found, { q: args['n'] }).query, 'q=9007199254740993')
})

await t.test('requests: only a valid media type is accepted from the service', async (t) => {
  const accepted = (media: string) =>
    toolFor({ responses: { 200: { content: { [media]: {} } } } }).request.response.accept
  t.equal(accepted('Text/CSV; charset=utf-8'), 'text/csv')
  for (const media of ['text/x\r\nX-Evil: 1', 'text/\u00fc', 'text/a b', 'text/', ''])
    t.equal(accepted(media), undefined)
})
