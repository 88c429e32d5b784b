/**
 * Two agents act for a signed-in person at two replicas of a virtual server on one Redis. Policies and the audit log see
 * the person and the acting agent.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { refusal, tokenRequest, tokensOf } from '../../helpers/authserver/authserver.ts'
import { assertionType, signAssertion } from '../../helpers/authserver/declared-client.ts'
import { accessTokenType, exchangeGrant } from '../../helpers/authserver/delegation.ts'
import { type Replica, type Replicas, startReplicas } from '../../helpers/authserver/replicas.ts'
import {
  connectSignedIn,
  missingBrowser,
  openBrowser,
  type SignedInClient,
  signIn,
  startLanding,
  storingProvider,
} from '../../helpers/authserver/signed-in-client.ts'
import { makeDpopClient } from '../../helpers/oauth/dpop-client.ts'
import { missingRedisTls, until } from '../../helpers/redis.ts'

t.setTimeout(240_000)

/** The person uses one tool and the agent `ci` another one. No other agent uses any tool. */
const policies = (): readonly string[] => [
  `permit(principal, action, resource == Tool::"who_notes") when { principal.kind == "user" };`,
  `permit(principal, action, resource == Tool::"who_deploy")
   when { principal.kind == "user" && context has actor && context.actor == "client:ci" };`,
  `forbid(principal, action, resource == Tool::"who_notes") when { context has actor };`,
]

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

async function connect(t: Test, { origin }: Replica, name: string, token: string): Promise<Client> {
  const client = new Client({ name, version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit }))
  t.teardown(() => client.close())
  return client
}

const toolsOf = async (client: Client): Promise<readonly string[]> =>
  (await client.listTools()).tools.map(({ name }) => name)

interface ExchangeRequest {
  readonly clientId: 'ci' | 'signer'
  readonly subject: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Exchanges a token at one replica, as `ci` with its secret or as `signer` with its key. */
async function exchange(
  { secret, key, origin }: Replicas,
  replica: Replica,
  { clientId, subject, headers = {} }: ExchangeRequest,
): Promise<Response> {
  const credentials =
    clientId === 'ci'
      ? { client_id: 'ci', client_secret: secret }
      : {
          client_assertion_type: assertionType,
          client_assertion: await signAssertion(key, { clientId, issuer: origin }),
        }
  return tokenRequest(
    { issuer: replica.origin },
    {
      grant_type: exchangeGrant,
      subject_token: subject,
      subject_token_type: accessTokenType,
      ...credentials,
    },
    headers,
  )
}

t.test('two replicas: agents act for a person', { skip: missingBrowser || missingRedisTls }, async (t) => {
  const rig = await startReplicas(t, ['notes', 'deploy'], { policies, delegates: ['ci', 'signer'] })
  const { first, second } = rig
  const person = await connectPerson(t, rig.origin)
  const user = decodeJwt(person.accessToken())
  const { access_token: byCi } = await tokensOf(
    await exchange(rig, first, { clientId: 'ci', subject: person.accessToken() }),
  )
  const { access_token: bySigner } = await tokensOf(
    await exchange(rig, second, { clientId: 'signer', subject: byCi }),
  )

  await t.test('policies receive the person and the outermost agent', async (t) => {
    t.same(await person.listTools(), ['who_notes'])
    const agent = await connect(t, second, 'agent', byCi)
    t.same(await toolsOf(agent), ['who_deploy'])
    const { content } = await agent.callTool({ name: 'who_deploy', arguments: {} })
    t.match(JSON.stringify(content), 'authorization: none')
    const next = await connect(t, first, 'next', bySigner)
    t.same(await toolsOf(next), [])
  })

  await t.test('the audit line names the person and the agent', async (t) => {
    const lineOf = () => second.lines().find(({ type }) => type === 'mcp_tool_call')
    await until(() => lineOf() !== undefined)
    t.match(lineOf(), {
      subjects: { user_id: user.sub, client_id: 'ci' },
      delegation: { chain: [{ sub: 'client:ci' }] },
    })
    const subjectsOf = (replica: Replica) =>
      replica
        .lines()
        .filter(({ type }) => type === 'auth_token_exchanged')
        .map(({ subjects }) => [subjects['client_id'], subjects['user_id']])
    t.same(
      [...subjectsOf(first), ...subjectsOf(second)],
      [
        ['ci', user.sub],
        ['signer', user.sub],
      ],
    )
  })

  await t.test('an agent cannot join the session of the person', async (t) => {
    const headers = { authorization: `Bearer ${person.accessToken()}`, ...mcpHeaders }
    const opened = await fetch(`${first.origin}/mcp`, { method: 'POST', headers, body: initialize })
    const session = opened.headers.get('mcp-session-id') ?? ''
    const list = (token: string) =>
      fetch(`${first.origin}/mcp`, {
        method: 'POST',
        headers: { ...mcpHeaders, authorization: `Bearer ${token}`, 'mcp-session-id': session },
        body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' }),
      })
    t.equal((await list(person.accessToken())).status, 200)
    t.equal((await list(byCi)).status, 404)
  })

  await t.test('both replicas require the proof for a bound token of an agent', async (t) => {
    const client = await makeDpopClient()
    const headers = { dpop: await client.proof('POST', `${rig.origin}/oauth/token`) }
    const request = { clientId: 'ci', subject: person.accessToken(), headers } as const
    const { access_token: bound } = await tokensOf(await exchange(rig, first, request))
    t.match(decodeJwt(bound), { sub: user.sub, act: { sub: 'client:ci' }, cnf: client.cnf })
    for (const replica of [first, second]) {
      const open = async (credential: Readonly<Record<string, string>>) => {
        const init = { method: 'POST', headers: { ...mcpHeaders, ...credential }, body: initialize }
        return (await fetch(`${replica.origin}/mcp`, init)).status
      }
      const dpop = await client.proof('POST', `${rig.origin}/mcp`, bound)
      t.equal(await open({ authorization: `Bearer ${bound}` }), 401)
      t.equal(await open({ authorization: `DPoP ${bound}` }), 401)
      t.equal(await open({ authorization: `DPoP ${bound}`, dpop }), 200)
      const chained = await exchange(rig, replica, { clientId: 'signer', subject: bound })
      t.equal(await refusal(chained), '400 invalid_request')
    }
  })

  await t.test('an agent that is removed loses its tokens at both replicas', async (t) => {
    rig.publish(['signer'])
    for (const replica of [first, second]) {
      for (const token of [byCi, bySigner]) {
        await until(async () => {
          const headers = { ...mcpHeaders, authorization: `Bearer ${token}` }
          const body = initialize
          const { status } = await fetch(`${replica.origin}/mcp`, { method: 'POST', headers, body })
          return status === 401
        })
      }
    }
    t.match(await person.call('who_notes'), 'authorization: none', 'the person stays signed in')
  })

  await t.test('no log contains a token or a secret', async (t) => {
    for (const { gateway, lines } of [first, second]) {
      for (const text of [gateway.running().output(), JSON.stringify(lines())]) {
        t.notMatch(text, /eyJ|gh_rt_|gh_ac_|upstream-secret|redis-password/)
        t.notOk(text.includes(rig.secret))
      }
    }
  })
})

const mcpHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-06-18',
}
const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'session', version: '1' },
  },
})
