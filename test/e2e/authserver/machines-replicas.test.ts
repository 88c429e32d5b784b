/**
 * Two replicas of a virtual server with the embedded authorization server on one Redis. A person, a ServiceAccount and
 * two declared clients use them at the same time, behind an address that alternates requests between the replicas.
 */
import { once } from 'node:events'
import {
  ClientCredentialsProvider,
  PrivateKeyJwtProvider,
} from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { decodeJwt, exportJWK } from 'jose'
import t, { type Test } from 'tap'
import { refresh, refusal, tokenRequest, tokensOf } from '../../helpers/authserver/authserver.ts'
import { requestWithAssertion, signAssertion } from '../../helpers/authserver/declared-client.ts'
import { type AuditLine, type Replica, startReplicas } from '../../helpers/authserver/replicas.ts'
import {
  connectSignedIn,
  missingBrowser,
  openBrowser,
  type SignedInClient,
  signIn,
  startLanding,
  storingProvider,
} from '../../helpers/authserver/signed-in-client.ts'
import { post } from '../../helpers/mcp/wire.ts'
import { missingRedisTls, until } from '../../helpers/redis.ts'

t.setTimeout(240_000)

const serviceAccount = 'system:serviceaccount:jobs:nightly'
const serviceAccountClaims = {
  'kubernetes.io': {
    namespace: 'jobs',
    pod: { name: 'nightly-7k2xw', uid: '1c4e8f2a-6f0b-4d7e-9a53-0d6c5c1f2b3a' },
    serviceaccount: { name: 'nightly', uid: '8b1d2c3e-4f50-4a61-b728-39a0b1c2d3e4' },
  },
}

/** The tool that each caller may call. */
const toolOf = { person: 'notes', pod: 'backup', ci: 'deploy', signer: 'sign' } as const
type Name = keyof typeof toolOf
const names = Object.keys(toolOf) as Name[]
const toolNames = names.map((name) => `who_${toolOf[name]}`)

function policiesFor(origin: string, cluster: string): readonly string[] {
  const call = (who: string, name: Name, when: string) =>
    `permit(${who}, action == Action::"call_tool", resource == Tool::"who_${toolOf[name]}") when { ${when} };`
  return [
    call('principal', 'person', `principal.kind == "user" && principal.issuer == "${origin}"`),
    call(`principal == Client::"${cluster}#${serviceAccount}"`, 'pod', `principal.issuer == "${cluster}"`),
    call('principal == Client::"client:ci"', 'ci', 'principal.clientId == "ci"'),
    call(
      'principal',
      'signer',
      'principal.clientId == "signer" && principal.authMethod == "private_key_jwt"',
    ),
  ]
}

/** Connects the client of a person, who signs in with a browser. */
async function connectPerson(t: Test, origin: string): Promise<SignedInClient> {
  const [browser, landing] = [await openBrowser(t), await startLanding(t)]
  const person = await connectSignedIn({
    generation: 'sdk1',
    url: `${origin}/mcp`,
    provider: storingProvider(landing),
    login: (start) => signIn(browser, landing, start, 'alice'),
  })
  t.teardown(() => person.close())
  return person
}

/** Connects an SDK client that ends with the test. */
async function connect(
  t: Test,
  origin: string,
  name: string,
  options: StreamableHTTPClientTransportOptions,
): Promise<Client> {
  const client = new Client({ name, version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), options)
  await client.connect(transport)
  t.teardown(() => client.close())
  return client
}

const bearer = (token: string): StreamableHTTPClientTransportOptions => ({
  requestInit: { headers: { authorization: `Bearer ${token}` } },
})

/** Calls all tools at the same time and returns the names of the ones that the policies permit. */
async function permitted(client: Client): Promise<readonly string[]> {
  const outcomes = await Promise.all(
    toolNames.map((name) =>
      client.callTool({ name, arguments: {} }).then(
        ({ content }) => [name, JSON.stringify(content)] as const,
        (error: unknown) => [name, String(error)] as const,
      ),
    ),
  )
  const others = outcomes.filter(([, text]) => !text.includes('authorization: none, cookie: none'))
  for (const [name, text] of others) {
    if (!/denied/.test(text)) throw new Error(`${name}: expected a denial, received ${text}`)
  }
  return outcomes.filter((outcome) => !others.includes(outcome)).map(([name]) => name)
}

/** Status of a request with a token at one replica. */
async function statusOf({ origin }: Replica, token: string): Promise<number> {
  const clientInfo = { name: 'job', version: '1' }
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  return (await post(`${origin}/mcp`, body, { authorization: `Bearer ${token}` })).status
}

t.test(
  'two replicas: people, a ServiceAccount and declared clients',
  { skip: missingBrowser || missingRedisTls },
  async (t) => {
    const rig = await startReplicas(t, Object.values(toolOf), { policies: policiesFor })
    const { origin, first, second, cluster, secret, key } = rig
    const replicas = [first, second]
    const processes = replicas.map(({ gateway }) => gateway.running())

    // Each logs in through the common address, so that both replicas take part.
    const ci = new ClientCredentialsProvider({ clientId: 'ci', clientSecret: secret, expectedIssuer: origin })
    const signer = new PrivateKeyJwtProvider({
      clientId: 'signer',
      privateKey: { ...(await exportJWK(key.privateKey)), kid: key.jwk.kid },
      algorithm: key.alg,
      expectedIssuer: origin,
    })
    const [person, pod] = await Promise.all([
      connectPerson(t, origin),
      cluster.token(serviceAccount, serviceAccountClaims),
    ])
    const behindFront = {
      pod: await connect(t, origin, 'pod', bearer(pod)),
      ci: await connect(t, origin, 'ci', { authProvider: ci }),
      signer: await connect(t, origin, 'signer', { authProvider: signer }),
    }
    const tokens: Readonly<Record<Name, string>> = {
      person: person.accessToken(),
      pod,
      ci: ci.tokens()?.access_token ?? '',
      signer: signer.tokens()?.access_token ?? '',
    }

    await t.test('each caller can call only its own tool, at both replicas at the same time', async (t) => {
      t.same(await person.listTools(), ['who_notes'])
      const atReplicas = await Promise.all(
        names.flatMap((name) =>
          replicas.map(async (replica) => ({
            name,
            client: await connect(t, replica.origin, name, bearer(tokens[name])),
          })),
        ),
      )
      const alternating = Object.entries(behindFront).map(([name, client]) => ({
        name: name as Name,
        client,
      }))
      await Promise.all(
        [...atReplicas, ...alternating].map(async ({ name, client }) => {
          const { tools } = await client.listTools()
          t.same(
            tools.map((tool) => tool.name),
            [`who_${toolOf[name]}`],
          )
          t.same(await permitted(client), [`who_${toolOf[name]}`], name)
        }),
      )
      for (let call = 0; call < 4; call++) t.match(await person.call('who_notes'), 'authorization: none')
      t.ok(rig.backend.seen.every(({ authorization }) => authorization === undefined))
    })

    await t.test('audit lines contain issuer, subject and client', async (t) => {
      const { sub } = decodeJwt(tokens.person)
      const subjects: Readonly<Record<Name, object>> = {
        person: { issuer: origin, user_id: sub, client_id: person.clientId() },
        // The token of a ServiceAccount has no OAuth client.
        pod: { issuer: cluster.issuer, user_id: `${cluster.issuer}#${serviceAccount}`, client_id: undefined },
        ci: { issuer: origin, user_id: 'client:ci', client_id: 'ci' },
        signer: { issuer: origin, user_id: 'client:signer', client_id: 'signer' },
      }
      for (const replica of replicas) {
        const isOfPerson = ({ type, subjects }: AuditLine) =>
          type === 'mcp_tool_call' && subjects['client_name'] === 'sdk1'
        await until(() => replica.lines().some(isOfPerson))
        const callsOf = (name: Name, outcome: string) =>
          replica
            .lines()
            .filter(
              (line) =>
                line.type === 'mcp_tool_call' &&
                line.outcome === outcome &&
                line.subjects['client_name'] === name,
            )
        for (const name of names) {
          await until(() => callsOf(name, 'success').length > 0 && callsOf(name, 'denied').length >= 3)
          const [success, denied] = [callsOf(name, 'success'), callsOf(name, 'denied')]
          t.same([...new Set(success.map(({ target }) => target.name))], [`who_${toolOf[name]}`])
          for (const line of [...success, ...denied]) t.match(line.subjects, subjects[name])
        }
      }
      const issued = replicas
        .flatMap(({ lines }) => lines())
        .filter(({ type }) => type === 'auth_token_issued')
      t.same(
        new Set(issued.map((line) => line.subjects['client_id'])),
        new Set([person.clientId(), 'ci', 'signer']),
      )
    })

    await t.test(
      'the second replica accepts a token from the first, but rejects a used assertion',
      async (t) => {
        const assertion = await signAssertion(key, { clientId: 'signer', issuer: origin })
        const { access_token: token } = await tokensOf(
          await requestWithAssertion({ issuer: first.origin }, assertion),
        )
        const client = await connect(t, second.origin, 'signer', bearer(token))
        t.same(await permitted(client), ['who_sign'])
        const replayed = await requestWithAssertion({ issuer: second.origin }, assertion)
        t.equal(await refusal(replayed), '401 invalid_client')
        await until(() =>
          second
            .lines()
            .some(
              ({ type, metadata }) =>
                type === 'auth_client_rejected' &&
                metadata.extra.reason === 'the assertion has already been used',
            ),
        )
      },
    )

    await t.test('a person keeps the session of a killed replica', async (t) => {
      rig.route([second])
      const { child } = first.gateway.running()
      child.kill('SIGKILL')
      await once(child, 'exit')
      t.match(await person.call('who_notes'), 'authorization: none')
      await first.gateway.restart()
      processes.push(first.gateway.running())
      rig.route([first])
      t.match(await person.call('who_notes'), 'authorization: none')
      t.equal(person.accessToken(), tokens.person, 'the person did not sign in again')
      const { refresh_token: refreshToken = '' } = (await person.provider.tokens()) ?? {}
      t.equal((await refresh({ issuer: first.origin }, person.clientId(), refreshToken)).status, 200)
      t.same(await permitted(behindFront.signer), ['who_sign'], 'the session of a client continues as well')
      rig.route(replicas)
    })

    await t.test('a client that is removed from the file loses its token without a restart', async (t) => {
      for (const replica of replicas) t.equal(await statusOf(replica, tokens.ci), 200)
      rig.publish(['signer'])
      for (const replica of replicas) {
        const form = { grant_type: 'client_credentials', client_id: 'ci', client_secret: secret }
        // The other replica's removal reaches this one through the store, before this one reads the file again.
        await until(async () => {
          const response = await tokenRequest({ issuer: replica.origin }, form)
          return (await refusal(response)) === '401 invalid_client'
        })
        t.equal(await statusOf(replica, tokens.ci), 401)
        for (const name of ['person', 'pod', 'signer'] as const)
          t.equal(await statusOf(replica, tokens[name]), 200, name)
      }
      await t.rejects(behindFront.ci.callTool({ name: 'who_deploy', arguments: {} }))
    })

    await t.test('no log contains a token or a secret', async (t) => {
      const texts = [
        ...processes.map(({ output }) => output()),
        ...replicas.map(({ lines }) => JSON.stringify(lines())),
      ]
      for (const text of texts) {
        t.notMatch(text, /eyJ|gh_rt_|gh_ac_|upstream-secret|redis-password/)
        t.notOk(text.includes(secret))
      }
    })
  },
)
