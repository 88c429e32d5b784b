/** Token exchange, guardrails, scripts and skipped file uploads of REST services, with an SDK client. */
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import t from 'tap'
import { type Context, startOidcProvider } from '../../../helpers/authserver/oidc-provider.ts'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { startRestRig } from '../../../helpers/openapi/rest-rig.ts'

const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const audience = 'https://pets.example'
const secret = 'gw-secret-4711'

/** A real OpenID provider that exchanges the tokens of an issuer for tokens of the same user. */
async function startExchange(issuer: string) {
  const client = {
    ...{ client_id: 'gateway', client_secret: secret, redirect_uris: [], response_types: [] },
    grant_types: [grant],
  }
  const idp = await startOidcProvider({ clients: [client], resources: { [audience]: {} } })
  idp.provider.registerGrantType(
    grant,
    async (ctx: Context) => {
      const { subject_token: subject = '', audience: resource = '' } = ctx.oidc.params as Record<
        string,
        string
      >
      const { sub = '', iss } = decodeJwt(subject)
      if (iss !== issuer) throw new Error('unknown issuer')
      const access_token = await idp.accessToken({ clientId: 'gateway', resource, accountId: sub })
      const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token'
      ctx.body = { access_token, token_type: 'Bearer', issued_token_type, expires_in: 300 }
    },
    ['audience', 'scope', 'subject_token', 'subject_token_type', 'requested_token_type'],
  )
  return idp
}

await t.test(
  'token exchange: the service receives a token for the same user, never the caller’s token',
  async (t) => {
    const issuer = await startTokenIssuer()
    const idp = await startExchange(issuer.issuer)
    t.teardown(() => Promise.all([issuer.close(), idp.close()]))
    const tokenExchange = {
      ...{ tokenUrl: `${idp.issuer}/token`, audience, clientId: 'gateway', clientSecretEnv: 'SECRET' },
    }
    const token = await issuer.token('alice')
    const rig = await startRestRig(t, {
      headers: { authorization: `Bearer ${token}` },
      config: {
        incomingAuth: issuer.incomingAuth,
        outgoingAuth: { source: 'inline', default: { type: 'token_exchange', tokenExchange } },
      },
      env: { SECRET: secret },
    })
    const keys = createRemoteJWKSet(new URL(`${idp.issuer}/jwks`))
    rig.service.answer = async ({ method, headers }) => {
      if (method === 'HEAD') return {}
      const { payload } = await jwtVerify((headers.authorization ?? '').replace('Bearer ', ''), keys, {
        audience,
      })
      return { body: { id: 1, name: payload.sub } }
    }
    t.match(await rig.call('getPet', { petId: 1 }), { structuredContent: { name: 'alice' } })
    t.notOk(rig.service.seen.some(({ headers }) => headers.authorization === `Bearer ${token}`))
    t.notMatch(rig.log(), token)
    t.notMatch(rig.log(), secret)
    rig.service.answer = ({ headers }) => ({ status: 400, body: { echo: headers.authorization } })
    const failed = JSON.stringify(await rig.call('getPet', { petId: 1 }))
    t.match(failed, /HTTP 400/)
    t.notMatch(failed, /eyJ/, 'an error does not contain the exchanged token')
  },
)

await t.test('guardrails redact arguments and results', async (t) => {
  const redact = ['arguments', 'results'].map((direction) => ({
    name: direction,
    patterns: ['email'],
    direction,
  }))
  const rig = await startRestRig(t, { config: { guardrails: { redact } } })
  const created = JSON.stringify(await rig.call('createPet', { name: 'tom@example.com', tag: 'cat' }))
  t.match(created, 'cat')
  t.notMatch(created, 'tom@example.com')
  const sent = rig.service.seen.find(({ method }) => method === 'POST')?.body ?? ''
  t.match(sent, '"tag":"cat"')
  t.notMatch(sent, 'tom@example.com', 'the service does not receive the address')
  rig.service.answer = ({ method }) =>
    method === 'GET' ? { body: { id: 1, name: 'rex@example.com' } } : undefined
  const result = JSON.stringify(await rig.call('getPet', { petId: 1 }))
  t.match(result, /"id":1/)
  t.notMatch(result, 'rex@example.com')
})

await t.test('a script combines calls of REST tools, and each call passes the checks', async (t) => {
  const policies = [
    'permit(principal, action, resource);',
    'forbid(principal, action == Action::"call_tool", resource == Tool::"deletePet");',
  ]
  const rig = await startRestRig(t, {
    config: {
      codeMode: { enabled: true },
      incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } },
    },
  })
  const run = (script: string) => rig.call('execute_tool_script', { script })
  const both = await run(
    'new = createPet(name="Tom")\npets = listPets()\nreturn {"id": new["id"], "names": [pet["name"] for pet in pets]}',
  )
  t.match(JSON.stringify(both), /Rex[^]*Tom/)
  const denied = await run('return deletePet(petId=1)')
  t.match(denied, { isError: true })
  t.notOk(rig.service.seen.some(({ method }) => method === 'DELETE'))
})

await t.test('operations with file uploads are not tools, and the log names the rule', async (t) => {
  const rig = await startRestRig(t)
  const { tools } = await rig.client.listTools()
  t.notOk(tools.some(({ name }) => name === 'uploadPhoto'))
  while (!rig.log().includes('an OpenAPI document was read'))
    await new Promise((done) => setTimeout(done, 20))
  t.match(rig.log(), /PUT \/pets\/\{petId\}\/photo: body_media_type/)
  const before = rig.service.seen.filter(({ method }) => method === 'PUT').length
  await rig.call('uploadPhoto', { petId: 1 }).catch(String)
  t.equal(rig.service.seen.filter(({ method }) => method === 'PUT').length, before)
})
