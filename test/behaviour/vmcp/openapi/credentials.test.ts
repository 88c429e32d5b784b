/** Credentials of REST services: bearer, API key in a header and in the query, OAuth client credentials. */
import t from 'tap'
import { startLoopback } from '../../../helpers/loopback.ts'
import { startRestRig } from '../../../helpers/openapi/rest-rig.ts'

const secret = 'k-4711-secret'
const injected = (headerName: string, headerValueEnv: string) => ({
  source: 'inline',
  default: { type: 'header_injection', headerInjection: { headerName, headerValueEnv } },
})

await t.test('a bearer token and an API key in a header', async (t) => {
  for (const [header, value] of [
    ['Authorization', `Bearer ${secret}`],
    ['X-API-Key', secret],
  ] as const) {
    const rig = await startRestRig(t, {
      config: { outgoingAuth: injected(header, 'KEY') },
      env: { KEY: value },
    })
    t.match(await rig.call('getPet', { petId: 1 }), { structuredContent: { name: 'Rex' } })
    t.equal(rig.service.seen.at(-1)?.headers[header.toLowerCase()], value)
    for (const { method, headers } of rig.service.seen)
      if (method === 'HEAD') t.equal(headers[header.toLowerCase()], undefined, 'checks contain no credential')
    t.notMatch(rig.log(), secret)
  }
})

await t.test('an API key in the query, which arguments cannot replace', async (t) => {
  const parameters = [
    { name: 'api_key', in: 'query', required: true, schema: { type: 'string' } },
    { name: 'X-Api-Key', in: 'header', required: true, schema: { type: 'string' } },
    { name: 'q', in: 'query', allowReserved: true, schema: { type: 'string' } },
    { name: 'filter', in: 'query', schema: { type: 'object' } },
  ]
  const rig = await startRestRig(t, {
    config: { outgoingAuth: injected('X-API-Key', 'KEY') },
    env: { KEY: `${secret}&x=1` },
    openapi: { apiKeyQuery: { header: 'X-API-Key', parameter: 'api_key' } },
    document: {
      openapi: '3.1.0',
      info: {},
      paths: {
        '/pets': { get: { operationId: 'find', parameters, responses: { 200: { description: '' } } } },
      },
    },
  })
  const { tools } = await rig.client.listTools()
  t.same(Object.keys(tools[0]?.inputSchema.properties ?? {}), ['q', 'filter'], 'no argument for the key')
  for (const name of ['api_key', 'API_Key', 'api_key[]', 'api_key[a]'])
    t.match(await rig.call('find', { filter: { [name]: 'mine' } }), {
      isError: true,
      content: [{ text: `invalid argument "filter": must not contain ${JSON.stringify(name)}` }],
    })
  t.match(await rig.call('find', { api_key: 'mine' }), { isError: true })
  await rig.call('find', { q: 'a' })
  const { query, headers } = rig.service.seen.at(-1) ?? {}
  t.same(query?.getAll('api_key'), [`${secret}&x=1`])
  t.equal(query?.get('q'), 'a')
  t.equal(headers?.['x-api-key'], undefined)
  rig.service.answer = ({ method, query: sent }) =>
    method === 'HEAD' ? {} : { status: 500, body: `bad key ${sent.get('api_key')} in ${String(sent)}` }
  const failed = await rig.call('find')
  t.match(failed, { isError: true, content: [{ text: /^HTTP 500: bad key \[redacted\]/ }] })
  t.notMatch(JSON.stringify(failed), secret)
  t.notMatch(rig.log(), secret)
})

await t.test('OAuth client credentials, and a 401 of the service', async (t) => {
  let issued = 0
  const server = await startLoopback(() => ({
    body: { access_token: `token-${++issued}`, token_type: 'Bearer', expires_in: 3_600 },
  }))
  t.teardown(() => server.close())
  const rig = await startRestRig(t, {
    config: {
      outgoingAuth: {
        source: 'inline',
        default: {
          type: 'client_credentials',
          clientCredentials: { tokenUrl: server.url, clientId: 'gw', clientSecretEnv: 'SECRET' },
        },
      },
    },
    env: { SECRET: secret },
  })
  t.match(await rig.call('getPet', { petId: 1 }), { structuredContent: { name: 'Rex' } })
  t.equal(rig.service.seen.at(-1)?.headers.authorization, 'Bearer token-1')
  rig.service.answer = () => ({ status: 401, body: 'who?' })
  t.match(await rig.call('getPet', { petId: 1 }), {
    isError: true,
    content: [{ text: 'backend pets: authentication to the backend failed (HTTP 401)' }],
  })
  t.notMatch(rig.log(), /token-\d|k-4711/)
})

await t.test('errors mask the credentials of the same call, but not arguments', async (t) => {
  const rig = await startRestRig(t, {
    config: { outgoingAuth: injected('X-API-Key', 'KEY') },
    env: { KEY: secret },
  })
  const id = '3f2504e0-4f89-11d3-9a0c-0305e82c3301'
  rig.service.answer = ({ method }) =>
    method === 'HEAD' ? {} : { status: 404, body: `no label-a, no ${id}, ${secret}` }
  const text = `HTTP 404: no label-a, no ${id}, [redacted]`
  t.match(await rig.call('listPets', { 'X-Trace-Label': 'label-a' }), { content: [{ text }] })
  t.match(await rig.call('listPets'), { content: [{ text }] }, 'headers of an earlier call are not masked')
})

await t.test('errors mask fixed values of headers', async (t) => {
  const overrides = { listPets: { set: { 'header.X-Trace-Label': 'label-a' } } }
  const rig = await startRestRig(t, { openapi: { overrides } })
  rig.service.answer = ({ method }) => (method === 'HEAD' ? {} : { status: 404, body: 'no label-a' })
  t.match(await rig.call('listPets'), { content: [{ text: 'HTTP 404: no [redacted]' }] })
})

await t.test('successful responses are not changed', async (t) => {
  const rig = await startRestRig(t, {
    config: { outgoingAuth: injected('X-API-Key', 'KEY') },
    env: { KEY: secret },
  })
  rig.service.answer = () => ({ body: { id: 1, name: secret } })
  t.match(await rig.call('getPet', { petId: 1 }), { structuredContent: { name: secret } })
})

await t.test('tools have no arguments for configured headers, even for required ones', async (t) => {
  const parameters = ['X-Tenant', 'X-Api-Key', 'X-Label', 'Authorization', 'Host', 'Cookie'].map((name) => ({
    ...{ name, in: 'header', required: /^X-[TA]/.test(name), schema: { type: 'string' } },
  }))
  const rig = await startRestRig(t, {
    backend: { headersEnv: 'HEADERS' },
    config: { outgoingAuth: injected('X-API-Key', 'KEY') },
    env: { KEY: secret, HEADERS: JSON.stringify({ addPlaintextHeaders: { 'x-tenant': 'acme' } }) },
    document: {
      openapi: '3.1.0',
      info: {},
      paths: { '/pets': { get: { operationId: 'find', parameters, responses: {} } } },
    },
  })
  const { tools } = await rig.client.listTools()
  t.same(Object.keys(tools[0]?.inputSchema.properties ?? {}), ['X-Label'])
  t.equal(tools[0]?.inputSchema.required, undefined)
  t.match(await rig.call('find', { 'X-Label': 'a\r\nX-Admin: 1' }), { isError: true })
  for (const name of ['X-Tenant', 'X-Api-Key', 'Authorization'])
    t.match(await rig.call('find', { [name]: 'x' }), { isError: true })
  t.notOk((await rig.call('find', { 'X-Label': 'a' })).isError)
  t.match(rig.service.seen.at(-1)?.headers, { 'x-tenant': 'acme', 'x-api-key': secret, 'x-label': 'a' })
})
