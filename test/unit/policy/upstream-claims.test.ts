/** Claims from the primary upstream provider instead of the presented token. */
import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer, type UpstreamTokenSource } from '../../../runtime/policy/index.ts'
import { proves } from '../../helpers/proves.ts'

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const jwt = (claims: unknown): string => `${part({ alg: 'RS256' })}.${part(claims)}.c2ln`

type Tokens = Awaited<ReturnType<UpstreamTokenSource['get']>>

async function ask(condition: string, tokens: Tokens | Error): Promise<string> {
  const asked: string[] = []
  const authorizer = makeAuthorizer(
    {
      policies: [`permit(principal, action, resource) when { ${condition} };`],
      entitiesJson: '[]',
      groupEntityType: 'ServiceGroup',
      primaryUpstreamProvider: 'corp',
    },
    {
      serverName: 'front',
      upstreamTokens: {
        get(caller, provider) {
          asked.push(`${caller.subject}@${provider}`)
          return tokens instanceof Error ? Promise.reject(tokens) : Promise.resolve(tokens)
        },
      },
    },
  )
  const caller = makeCaller({ issuer: 'https://front', subject: 'u-1', claims: { sub: 'u-1', own: true } })
  const subject = await authorizer.subject(caller)
  t.strictSame(asked, ['u-1@corp'])
  return authorizer.decide(subject, { action: 'call_tool', id: 'echo' })
}

t.test('primaryUpstreamProvider: the claims come from its access token', async (t) => {
  proves('3.config.incomingAuth.authz.primaryUpstreamProvider')
  const tokens = { accessToken: jwt({ sub: 'ada', groups: ['ops'], level: 4 }) }
  const condition =
    'principal == Client::"ada" && principal in ServiceGroup::"ops" && context.claim_level == 4 && !(context has claim_own)'
  t.equal(await ask(condition, tokens), 'permitted')
})

t.test('primaryUpstreamProvider: when unset, the claims come from the presented token', async (t) => {
  const tokens = { accessToken: jwt({ sub: 'ada' }) }
  const authorizer = makeAuthorizer(
    {
      policies: ['permit(principal == Client::"u-1", action, resource) when { context.claim_own };'],
      entitiesJson: '[]',
      groupEntityType: 'ServiceGroup',
    },
    { serverName: 'front', upstreamTokens: { get: () => Promise.resolve(tokens) } },
  )
  const caller = makeCaller({ issuer: 'https://front', subject: 'u-1', claims: { sub: 'u-1', own: true } })
  t.equal(
    authorizer.decide(await authorizer.subject(caller), { action: 'call_tool', id: 'echo' }),
    'permitted',
  )
})

t.test(
  'primaryUpstreamProvider: name and email come from the ID token if the access token has none',
  async (t) => {
    const idToken = jwt({ name: 'Ada', email: 'ada@example.com', level: 9 })
    const condition =
      'context.claim_name == "Ada" && context.claim_email == "own@example.com" && !(context has claim_level)'
    t.equal(await ask(condition, { accessToken: jwt({ email: 'own@example.com' }), idToken }), 'permitted')
  },
)

t.test('primaryUpstreamProvider: an opaque token, with name and email from the ID token', async (t) => {
  const askOpaque = (claims: object, condition: string) =>
    ask(condition, { accessToken: 'opaque', idToken: jwt(claims) })
  const email = 'ada@example.com'
  t.equal(await askOpaque({ email }, `context.claim_own && context.claim_email == "${email}"`), 'permitted')
  t.equal(await askOpaque({ email, email_verified: true }, `context.claim_email == "${email}"`), 'permitted')
  t.equal(await askOpaque({ email, email_verified: false }, '!(context has claim_email)'), 'permitted')
  t.equal(
    await askOpaque({ sub: 'x', level: 9 }, 'principal == Client::"u-1" && !(context has claim_level)'),
    'permitted',
  )
})

t.test(
  'primaryUpstreamProvider: with an opaque token, the claims of the presented token apply',
  async (t) => {
    for (const accessToken of ['ya29.abc-def', 'gho_abcdef', 'a.b.c', `${part({ alg: 'RSA-OAEP' })}.a.b.c.d`])
      t.equal(
        await ask('principal == Client::"u-1" && context.claim_own', { accessToken }),
        'permitted',
        accessToken,
      )
  },
)

t.test('primaryUpstreamProvider: nothing is permitted without a token or with a broken one', async (t) => {
  t.equal(await ask('true', undefined), 'forbidden')
  for (const payload of ['', 'bm90IGpzb24', part([1]), part('text')]) {
    const accessToken = `${part({ alg: 'RS256' })}.${payload}.c2ln`
    t.equal(await ask('true', { accessToken }), 'forbidden', payload)
  }
})

t.test('primaryUpstreamProvider: an outage is an error, not a decision', async (t) => {
  await t.rejects(ask('true', new GatehouseError('AUTH_UNAVAILABLE')), { code: 'AUTH_UNAVAILABLE' })
})

t.test('primaryUpstreamProvider: a renewed token is reloaded', async (t) => {
  let level = 1
  const authorizer = makeAuthorizer(
    {
      policies: ['permit(principal, action, resource) when { context.claim_level > 3 };'],
      entitiesJson: '[]',
      groupEntityType: 'ServiceGroup',
      primaryUpstreamProvider: 'corp',
    },
    {
      serverName: 'front',
      upstreamTokens: { get: () => Promise.resolve({ accessToken: jwt({ sub: 'ada', level }) }) },
    },
  )
  const caller = makeCaller({ issuer: 'https://front', subject: 'u-1', claims: { sub: 'u-1' } })
  const decide = async () =>
    authorizer.decide(await authorizer.subject(caller), { action: 'call_tool', id: 'echo' })
  t.equal(await decide(), 'unmentioned')
  level = 5
  t.equal(await decide(), 'permitted')
})

t.test('primaryUpstreamProvider: a subject of a trusted issuer is another principal', async (t) => {
  for (const sub of [
    'https://cluster.example#job',
    'http://127.0.0.1:8080#system:serviceaccount:a:b',
    'https://idp.example?tenant=a#alice',
    'spiffe://prod.example.com/agents/triage',
  ])
    t.not(await ask('true', { accessToken: jwt({ sub }) }), 'permitted', sub)
  for (const sub of ['https://cluster.example/job', 'a#b', 'urn:x#y'])
    t.equal(await ask('true', { accessToken: jwt({ sub }) }), 'permitted', sub)
})
