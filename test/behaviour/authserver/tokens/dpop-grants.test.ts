/** Bound tokens with token exchange and jwt-bearer: which key binds the new token, and which proof a bound token needs. */
import { decodeJwt } from 'jose'
import t from 'tap'
import type { Dpop } from '../../../../schemas/index.ts'
import {
  jsonOf,
  refusal,
  type Rig,
  startAuthServer,
  tokenRequest,
} from '../../../helpers/authserver/authserver.ts'
import {
  accessTokenType,
  delegate,
  delegateSecret,
  type Delegation,
  exchangeGrant,
  postAs,
  startDelegation,
} from '../../../helpers/authserver/delegation.ts'
import { assertionType, declared } from '../../../helpers/authserver/declared-client.ts'
import {
  jwtBearerGrant,
  type Platform,
  policyFor,
  serviceAccountClaims,
  startPlatform,
  trusted,
} from '../../../helpers/authserver/platform.ts'
import {
  makeTrustDomain,
  spiffeAssertionType,
  workloadClient,
} from '../../../helpers/authserver/platforms/spiffe.ts'
import { TestClient, type TokenAnswer } from '../../../helpers/authserver/test-client.ts'
import { type DpopClient, makeDpopClient, type ProofChanges } from '../../../helpers/oauth/dpop-client.ts'

t.setTimeout(120_000)

const optional: Dpop = { mode: 'optional', requireNonce: false, proofMaxAge: '60s', replay: 'store' }

async function proofHeader(
  { issuer }: Pick<Rig, 'issuer'>,
  key: DpopClient | undefined,
  changes: ProofChanges = {},
): Promise<Record<string, string>> {
  const url = `${issuer}/oauth/token`
  return key ? { dpop: await key.proof('POST', url, undefined, changes) } : {}
}

/** Sends a token request of a declared client, with a proof if a key is given. */
async function askAs(
  { rig }: Pick<Delegation, 'rig'>,
  clientId: string,
  form: Readonly<Record<string, string>>,
  key?: DpopClient,
): Promise<TokenAnswer> {
  const client = new TestClient(rig, { client_id: clientId })
  return client.token({ client_secret: delegateSecret, ...form }, await proofHeader(rig, key))
}

const exchangeForm = (subject: string) => ({
  grant_type: exchangeGrant,
  subject_token: subject,
  subject_token_type: accessTokenType,
})

t.test(
  'token exchange: the proof binds the new token, and a bound token needs the proof of its key',
  async (t) => {
    const started = await startDelegation(t, { config: { dpop: optional } })
    const { rig, app, user } = started
    const [agentKey, userKey] = [await makeDpopClient(), await makeDpopClient()]
    const exchange = (clientId: string, subject: string, key?: DpopClient) =>
      askAs(started, clientId, exchangeForm(subject), key)

    const plain = await exchange('agent', user.access)
    t.match(plain.body, { token_type: 'Bearer' })
    t.equal(plain.claims['cnf'], undefined)
    const bound = await exchange('agent', user.access, agentKey)
    t.match(bound.body, { token_type: 'DPoP' })
    t.match(bound.claims, { cnf: agentKey.cnf, act: { sub: 'client:agent' } })
    const described = await jsonOf(await postAs(started, 'agent', 'introspect', bound.access))
    t.match(described, { active: true, token_type: 'DPoP', cnf: agentKey.cnf })

    // A delegated token is a bound subject token for the next client.
    const reason = 'the subject_token is bound to a key or a certificate that the request does not prove'
    for (const key of [undefined, userKey]) {
      t.equal((await exchange('helper', bound.access, key)).outcome, '400 invalid_request')
      t.match(rig.events.at(-1), { type: 'client_rejected', clientId: 'helper', reason })
    }
    const chained = await exchange('helper', bound.access, agentKey)
    t.match(chained.claims, {
      cnf: agentKey.cnf,
      act: { sub: 'client:helper', act: { sub: 'client:agent' } },
    })

    const form = { grant_type: 'refresh_token', refresh_token: user.refresh }
    const own = await app.token(form, await proofHeader(rig, userKey))
    t.match(own.claims, { cnf: userKey.cnf }, 'a bound token of the user')
    for (const key of [undefined, agentKey])
      t.equal((await exchange('agent', own.access, key)).outcome, '400 invalid_request')
    t.match((await exchange('agent', own.access, userKey)).claims, { cnf: userKey.cnf })
  },
)

t.test('token exchange: a bound actor token needs the proof of its key', async (t) => {
  const started = await startDelegation(t, { config: { dpop: optional } })
  const [key, other] = [await makeDpopClient(), await makeDpopClient()]
  const resource = `${started.rig.issuer}/mcp`
  const actor = await askAs(started, 'agent', { grant_type: 'client_credentials', resource }, key)
  t.match(actor.claims, { cnf: key.cnf })
  const form = {
    ...exchangeForm(started.user.access),
    actor_token: actor.access,
    actor_token_type: accessTokenType,
  }
  for (const given of [undefined, other])
    t.equal((await askAs(started, 'agent', form, given)).outcome, '400 invalid_request')
  t.match((await askAs(started, 'agent', form, key)).claims, { cnf: key.cnf })
})

t.test('token exchange: a client with bound tokens needs a proof', async (t) => {
  const started = await startDelegation(t, {
    clients: (issuer) => [delegate('agent', issuer, { isBound: true })],
    config: { dpop: optional },
  })
  const form = exchangeForm(started.user.access)
  t.equal((await askAs(started, 'agent', form)).outcome, '400 invalid_dpop_proof')
  t.equal((await askAs(started, 'agent', form, await makeDpopClient())).outcome, '200')
})

const job = serviceAccountClaims('jobs', 'nightly')

async function startForPods(t: Parameters<typeof startAuthServer>[0], dpop: Partial<Dpop>) {
  const cluster = await startPlatform(t)
  const config = (issuer: string) => ({
    dpop: { ...optional, ...dpop },
    assertionPolicies: [
      policyFor(trusted(cluster, 'cluster', { preset: 'kubernetes' }), [
        { subject: job.sub, scopes: ['tools:read'], resources: [`${issuer}/mcp`] },
      ]),
    ],
  })
  return { rig: await startAuthServer(t, { config }), cluster }
}

/** Requests a token with an assertion, and with a proof if a key is given. */
async function present(
  { rig }: { readonly rig: Rig; readonly cluster: Platform },
  assertion: string,
  key?: DpopClient,
  changes?: ProofChanges,
): Promise<Response> {
  const form = { grant_type: jwtBearerGrant, assertion }
  return tokenRequest(rig, form, await proofHeader(rig, key, changes))
}

t.test('jwt-bearer: the proof binds the token', async (t) => {
  const started = await startForPods(t, {})
  const { rig, cluster } = started
  const key = await makeDpopClient()
  const next = () => cluster.token(rig, job)
  t.match(await jsonOf(await present(started, await next())), { token_type: 'Bearer' })
  const body = await jsonOf(await present(started, await next(), key))
  t.match(body, { token_type: 'DPoP' })
  t.match(decodeJwt(String(body['access_token'])), { sub: `${cluster.issuer}#${job.sub}`, cnf: key.cnf })
  const replay = { claims: { jti: 'same' } }
  t.equal((await present(started, await next(), key, replay)).status, 200)
  t.equal(await refusal(await present(started, await next(), key, replay)), '400 invalid_dpop_proof')
})

t.test('jwt-bearer: a missing or invalid proof uses up no assertion', async (t) => {
  const key = await makeDpopClient()
  const required = await startForPods(t, { mode: 'required' })
  const assertion = await required.cluster.token(required.rig, job)
  t.equal(await refusal(await present(required, assertion)), '400 invalid_dpop_proof')
  const elsewhere = { claims: { htu: `${required.rig.issuer}/mcp` } }
  t.equal(await refusal(await present(required, assertion, key, elsewhere)), '400 invalid_dpop_proof')
  t.equal((await present(required, assertion, key)).status, 200)
  t.equal(await refusal(await present(required, assertion, key)), '400 invalid_grant', 'used once')

  const nonced = await startForPods(t, { requireNonce: true })
  const other = await nonced.cluster.token(nonced.rig, job)
  const first = await present(nonced, other, key)
  const nonce = first.headers.get('dpop-nonce') ?? ''
  t.equal(await refusal(first), '400 use_dpop_nonce')
  t.equal((await present(nonced, other, key, { nonce })).status, 200)
})

t.test('client assertions that are accepted once: a nonce or an invalid proof uses up none', async (t) => {
  const [cluster, domain, key] = await Promise.all([startPlatform(t), makeTrustDomain(t), makeDpopClient()])
  const rig = await startAuthServer(t, {
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      const identity = { subject: job.sub, maxAgeMs: 3_600_000, replay: 'once' } as const
      return {
        dpop: { ...optional, requireNonce: true },
        clients: [
          declared('nightly', resources, {
            federated: { issuer: trusted(cluster, 'cluster', { preset: 'kubernetes' }), ...identity },
          }),
          workloadClient(domain, 'agents', '/agents/*', resources),
        ],
      }
    },
  })
  const rows = [
    { type: assertionType, assertion: await cluster.token(rig, job), sub: 'client:nightly' },
    {
      type: spiffeAssertionType,
      assertion: await domain.svid(rig, '/agents/triage'),
      sub: 'spiffe://prod.example.com/agents/triage',
    },
  ]
  for (const { type, assertion, sub } of rows) {
    const form = {
      grant_type: 'client_credentials',
      client_assertion_type: type,
      client_assertion: assertion,
    }
    const ask = async (changes: ProofChanges) => tokenRequest(rig, form, await proofHeader(rig, key, changes))
    t.equal(await refusal(await ask({ claims: { htm: 'GET' } })), '400 invalid_dpop_proof')
    const first = await ask({})
    const nonce = first.headers.get('dpop-nonce') ?? ''
    t.equal(await refusal(first), '400 use_dpop_nonce')
    const body = await jsonOf(await ask({ nonce }))
    t.match(decodeJwt(String(body['access_token'])), { sub, cnf: key.cnf })
    t.equal(await refusal(await ask({ nonce })), '401 invalid_client', 'used once')
  }
})
