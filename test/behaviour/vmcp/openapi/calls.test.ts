/** REST services as backends: arguments, results, limits and errors of calls. */
import t from 'tap'
import { startLoopback } from '../../../helpers/loopback.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { startRestRig } from '../../../helpers/openapi/rest-rig.ts'

const textOf = (text: string | RegExp) => ({ content: [{ type: 'text', text }] })

await t.test('an SDK client uses a REST service', async (t) => {
  const { client, service, vmcp, call } = await startRestRig(t)
  const { tools } = await client.listTools()
  t.same(tools.map(({ name }) => name).toSorted(), ['createPet', 'deletePet', 'getPet', 'listPets'])
  t.match(await call('listPets', { limit: 5, 'X-Trace-Label': 'a' }), {
    structuredContent: { result: [{ id: 1, name: 'Rex' }] },
    ...textOf('[{"id":1,"name":"Rex"}]'),
  })
  t.match(service.seen.at(-1), {
    path: '/api/pets',
    headers: { 'x-trace-label': 'a', accept: 'application/json' },
  })
  t.equal(service.seen.at(-1)?.query.toString(), 'limit=5')
  t.match(await call('createPet', { name: 'Tom' }), { structuredContent: { id: 2, name: 'Tom' } })
  t.match(service.seen.at(-1), {
    method: 'POST',
    body: '{"name":"Tom"}',
    headers: { 'content-type': 'application/json' },
  })
  t.match(await call('deletePet', { petId: 2 }), textOf(''))
  t.match(await call('getPet', { petId: 2 }), {
    isError: true,
    ...textOf('HTTP 404: {"error":"no such pet"}'),
  })
  const answer = await stateless(vmcp.url, 'tools/call', { name: 'getPet', arguments: { petId: 1 } })
  t.match(answer.response, { result: { structuredContent: { id: 1, name: 'Rex' } } })
  t.match((await stateless(vmcp.url, 'tools/list', {})).response, {
    result: { tools: tools.map(({ name }) => ({ name })) },
  })
})

await t.test('invalid arguments cause readable errors, and no request is sent', async (t) => {
  const { call, service } = await startRestRig(t)
  await call('listPets')
  const before = service.seen.filter(({ method }) => method !== 'HEAD').length
  t.match(await call('getPet'), { isError: true, ...textOf(/"petId": is required/) })
  t.match(await call('getPet', { petId: '../x' }), { isError: true, ...textOf(/"petId"/) })
  t.match(await call('getPet', { petId: 1, verbose: true }), {
    isError: true,
    ...textOf(/unknown arguments: "verbose"/),
  })
  t.equal(service.seen.filter(({ method }) => method !== 'HEAD').length, before)
})

await t.test('big integers and the bytes of JSON responses stay as they are', async (t) => {
  const { service, vmcp } = await startRestRig(t)
  const body = '{"id":9007199254740993123, "name":"\\u00e9","x":1.50}'
  service.answer = () => ({ headers: { 'content-type': 'application/json' }, body })
  const { text } = await stateless(vmcp.url, 'tools/call', { name: 'getPet', arguments: { petId: 1 } })
  t.ok(text.includes(`"structuredContent":${body}`))
})

await t.test('response fields select members', async (t) => {
  const { call } = await startRestRig(t, { openapi: { response: { fields: ['name'] } } })
  t.match(await call('listPets'), {
    structuredContent: { result: [{ name: 'Rex' }] },
    ...textOf('[{"name":"Rex"}]'),
  })
})

await t.test('enforce: a response that does not match the document is an error', async (t) => {
  const { call, client, service } = await startRestRig(t, { openapi: { response: { output: 'enforce' } } })
  const { tools } = await client.listTools()
  t.match(tools.find(({ name }) => name === 'getPet')?.outputSchema, { required: ['id', 'name'] })
  t.match(await call('getPet', { petId: 1 }), { structuredContent: { id: 1 } })
  service.answer = () => ({ body: { id: 'one' } })
  t.match(await call('getPet', { petId: 1 }), {
    isError: true,
    ...textOf(/^the response does not match the OpenAPI document: /),
  })
})

await t.test('warn: a response that does not match reaches the client and is reported', async (t) => {
  const { call, client, service, log } = await startRestRig(t)
  await client.listTools()
  service.answer = () => ({ body: { id: 'one', more: [] } })
  t.match(await call('getPet', { petId: 1 }), { structuredContent: { id: 'one', more: [] } })
  while (!log().includes('does not match its OpenAPI document'))
    await new Promise((done) => setTimeout(done, 50))
  t.match(log(), /"backend":"pets".*"tool":"getPet"|"tool":"getPet".*"backend":"pets"/)
  service.answer = () => ({ body: 'plain', headers: { 'content-type': 'text/plain' } })
  t.match(await call('getPet', { petId: 1 }), { structuredContent: { result: 'plain' }, ...textOf('plain') })
  service.answer = () => ({ status: 204 })
  t.match(await call('getPet', { petId: 1 }), { structuredContent: {}, ...textOf('') })
})

await t.test('the size of responses is limited', async (t) => {
  const { call, service } = await startRestRig(t, { openapi: { response: { maxBytes: 2_048 } } })
  service.answer = () => ({ body: { id: 1, name: 'x'.repeat(10_000) } })
  t.match(await call('getPet', { petId: 1 }), {
    isError: true,
    ...textOf('backend pets: the response is larger than response.maxBytes allows (2048 bytes)'),
  })
  service.answer = () => ({
    status: 400,
    body: `a${'x'.repeat(200_000)}`,
    headers: { 'content-type': 'text/plain' },
  })
  const result = await call('getPet', { petId: 1 })
  t.match(result, { isError: true, ...textOf(/^HTTP 400: axxx.*…$/s) })
  t.ok(JSON.stringify(result).length < 5_000, 'an error body is shortened')
})

await t.test('the time of a call is limited', async (t) => {
  const { call, service } = await startRestRig(t, { openapi: { response: { timeout: '200ms' } } })
  service.answer = async () => {
    await new Promise((done) => setTimeout(done, 2_000))
    return {}
  }
  t.match(await call('getPet', { petId: 1 }), {
    isError: true,
    ...textOf(/did not answer in time|timed out|time limit/),
  })
})

await t.test('only GET and HEAD are retried after a lost connection', async (t) => {
  const { call, service } = await startRestRig(t)
  for (const [tool, args, attempts] of [
    ['getPet', { petId: 1 }, 2],
    ['createPet', { name: 'x' }, 1],
    ['deletePet', { petId: 1 }, 1],
  ] as const) {
    let seen = 0
    service.answer = ({ method }) => {
      if (method === 'HEAD') return {}
      seen++
      return 'cut'
    }
    t.match(await call(tool, args), { isError: true })
    t.equal(seen, attempts, tool)
  }
})

await t.test('redirects of requests with side effects are not followed', async (t) => {
  const { call, service } = await startRestRig(t)
  service.answer = ({ path }) =>
    path === '/api/pets' ? { status: 307, headers: { location: '/api/other' } } : {}
  t.match(await call('createPet', { name: 'x' }), {
    isError: true,
    ...textOf(/^HTTP 307: the service redirected/),
  })
  t.notOk(service.seen.some(({ path }) => path === '/api/other'))
})

await t.test('images are content, and other binary responses are errors', async (t) => {
  const { call, service } = await startRestRig(t)
  service.answer = () => ({ body: 'bytes', headers: { 'content-type': 'image/png' } })
  t.match(await call('deletePet', { petId: 1 }), {
    content: [{ type: 'image', mimeType: 'image/png', data: Buffer.from('bytes').toString('base64') }],
  })
  service.answer = () => ({ body: 'zip', headers: { 'content-type': 'application/zip' } })
  t.match(await call('deletePet', { petId: 1 }), {
    isError: true,
    ...textOf(/binary.*application\/zip, 3 bytes/),
  })
})

await t.test('redirects of GET stay within the host', async (t) => {
  const { call, service } = await startRestRig(t)
  const other = await startLoopback(() => ({ body: { id: 9, name: 'other' } }))
  t.teardown(() => other.close())
  service.answer = ({ path }) =>
    path === '/api/pets' ? { status: 302, headers: { location: '/api/pets/1' } } : undefined
  t.match(await call('listPets'), { structuredContent: { result: { id: 1, name: 'Rex' } } })
  service.answer = () => ({ status: 302, headers: { location: `${other.url}/pets` } })
  t.match(await call('listPets'), { isError: true, ...textOf(/^HTTP 302/) })
  t.equal(other.seen.length, 0)
})

await t.test('values of path parameters cannot select another operation or host', async (t) => {
  const document = {
    openapi: '3.1.0',
    info: {},
    servers: [{ url: 'http://169.254.169.254/latest' }],
    paths: {
      '/files/{name}': {
        get: {
          operationId: 'read',
          parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
          responses: {},
        },
      },
    },
  }
  const { call, service } = await startRestRig(t, { document })
  for (const name of ['..', '.', '', 'a/b', 'a\\b', '/etc', 'a\nb', '\0'])
    t.match(
      await call('read', { name }),
      { isError: true, content: [{ text: /"name"/ }] },
      JSON.stringify(name),
    )
  for (const [name, path] of [
    ['a?x=1#y', '/api/files/a%3Fx%3D1%23y'],
    ['@evil.example', '/api/files/%40evil.example'],
  ] as const) {
    await call('read', { name })
    t.equal(service.seen.findLast(({ method }) => method === 'GET')?.path, path)
  }
})
