/**
 * Clients without secrets at two replicas on one Redis: a pod that is a declared client, and a workload of a SPIFFE trust
 * domain. Each calls tools under policies that name it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { refusal, tokensOf } from '../../helpers/authserver/authserver.ts'
import { requestWithAssertion } from '../../helpers/authserver/declared-client.ts'
import { serviceAccountClaims, startPlatform, trusted } from '../../helpers/authserver/platform.ts'
import { startReplicas } from '../../helpers/authserver/replicas.ts'
import { requestWithSvid, trustDomainIn } from '../../helpers/authserver/platforms/spiffe.ts'
import { missingRedisTls, until } from '../../helpers/redis.ts'

t.setTimeout(240_000)

const pod = serviceAccountClaims('jobs', 'nightly')
const agent = 'spiffe://prod.example.com/agents/triage'

/** Calls a tool. Returns its text, or the error. */
async function call(t: Test, origin: string, token: string, name: string): Promise<string> {
  const client = new Client({ name: 'job', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit }))
  t.teardown(() => client.close())
  return client.callTool({ name, arguments: {} }).then(
    ({ content }) => JSON.stringify(content),
    (error: unknown) => String(error),
  )
}

t.test('two replicas: a federated client and a SPIFFE workload', { skip: missingRedisTls }, async (t) => {
  // startReplicas replaces the test's own directory.
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-spiffe-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const cluster = await startPlatform(t)
  const domain = await trustDomainIn(directory, 'prod.example.com')
  const policies = (origin: string): readonly string[] => [
    `permit(principal == Client::"client:nightly", action, resource == Tool::"who_backup") when {
      principal.kind == "machine" && principal.issuer == "${origin}" && principal.authMethod == "federated" };`,
    `permit(principal == Client::"${agent}", action, resource == Tool::"who_deploy") when {
      principal.kind == "machine" && principal.clientId == "agents" && principal.authMethod == "spiffe_jwt" };`,
  ]
  const federated = { issuerRef: 'cluster', subject: pod.sub, replay: 'untilExpiry' }
  const workload = {
    trustDomainRef: 'prod',
    principalPattern: 'spiffe://prod.example.com/agents/*',
    clientId: 'agents',
    scopes: ['tools'],
  }
  const { name: trustDomain, bundlePath } = domain
  const rig = await startReplicas(t, ['backup', 'deploy'], {
    policies,
    clients: () => [{ clientId: 'nightly', scopes: ['tools'], federated }],
    more: () => ({
      trustedIssuers: [trusted(cluster, 'cluster', { preset: 'kubernetes' })],
      spiffeTrustDomains: [{ name: 'prod', trustDomain, bundlePath }],
      inboundGrants: { spiffeClientAuth: [workload] },
    }),
  })
  const { origin, first, second } = rig
  const at = { issuer: origin, now: Date.now }
  const file = await cluster.token(at, { ...pod, exp: Math.floor(Date.now() / 1000) + 3_600 })
  const svid = await domain.svid(at, '/agents/triage')
  const { access_token: ofPod } = await tokensOf(await requestWithAssertion({ issuer: first.origin }, file))
  const { access_token: ofAgent } = await tokensOf(await requestWithSvid({ issuer: first.origin }, svid))

  await t.test('each client can call only its own tool, at both replicas', async (t) => {
    for (const replica of [first.origin, second.origin]) {
      t.match(await call(t, replica, ofPod, 'who_backup'), 'authorization: none')
      t.match(await call(t, replica, ofPod, 'who_deploy'), /denied/)
      t.match(await call(t, replica, ofAgent, 'who_deploy'), 'authorization: none')
      t.match(await call(t, replica, ofAgent, 'who_backup'), /denied/)
    }
  })

  await t.test(
    'a pod can present its token file again, a workload cannot present its JWT-SVID again',
    async (t) => {
      for (const replica of [first, second]) {
        t.equal((await requestWithAssertion({ issuer: replica.origin }, file)).status, 200)
        t.equal(await refusal(await requestWithSvid({ issuer: replica.origin }, svid)), '401 invalid_client')
      }
    },
  )

  await t.test('audit lines contain the subject and the reason of a rejection', async (t) => {
    const lines = () => [first, second].flatMap((replica) => replica.lines())
    await until(() => lines().some(({ type }) => type === 'auth_client_rejected'))
    for (const user of ['client:nightly', agent])
      t.ok(lines().some(({ type, subjects }) => type === 'mcp_tool_call' && subjects['user_id'] === user))
    const rejected = lines().find(({ type }) => type === 'auth_client_rejected')
    t.equal(rejected?.metadata.extra.reason, 'the assertion has already been used')
    t.notMatch(JSON.stringify(lines()), /eyJ/)
  })

  await t.test('changed identities lose their tokens without a restart', async (t) => {
    federated.subject = 'system:serviceaccount:jobs:other'
    workload.principalPattern = 'spiffe://prod.example.com/agents/other'
    rig.publish(['ci', 'signer'])
    for (const replica of [first, second]) {
      await until(
        async () =>
          (await refusal(await requestWithAssertion({ issuer: replica.origin }, file))) ===
          '401 invalid_client',
      )
      await t.rejects(call(t, replica.origin, ofPod, 'who_backup'), /401|Unauthorized|HTTP/)
      await t.rejects(call(t, replica.origin, ofAgent, 'who_deploy'), /401|Unauthorized|HTTP/)
    }
  })

  for (const { gateway } of [first, second]) t.notMatch(gateway.running().output(), /eyJ/)
})
