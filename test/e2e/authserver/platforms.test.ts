/**
 * A pod and a GitHub job get tokens from the embedded authorization server with their platform's tokens, without a
 * client, and call tools under policies that name them. Two replicas share one Redis.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { refusal, tokensOf } from '../../helpers/authserver/authserver.ts'
import {
  requestWithGrant,
  serviceAccountClaims,
  startPlatform,
  workflowClaims,
} from '../../helpers/authserver/platform.ts'
import { startReplicas } from '../../helpers/authserver/replicas.ts'
import { missingRedisTls, until } from '../../helpers/redis.ts'

t.setTimeout(240_000)

const pod = serviceAccountClaims('jobs', 'nightly')
const workflow = workflowClaims()

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

t.test('two replicas: a pod and a GitHub job', { skip: missingRedisTls }, async (t) => {
  const [cluster, github] = await Promise.all([startPlatform(t), startPlatform(t)])
  const tokenFile = join(t.testdir({}), 'token')
  const policies = (origin: string): readonly string[] => [
    `permit(principal == Client::"${cluster.issuer}#${pod.sub}", action, resource == Tool::"who_backup") when {
      principal.kind == "machine" && principal.issuer == "${origin}" && principal.authMethod == "jwt_bearer" };`,
    `permit(principal == Client::"${github.issuer}#${workflow.sub}", action, resource == Tool::"who_deploy");`,
  ]
  const bindings = {
    cluster: [{ subject: pod.sub, scopes: ['tools'] }],
    github: [
      { matcher: "claims.repository_id == '74' && claims.ref == 'refs/heads/main'", scopes: ['tools'] },
    ],
  }
  const rig = await startReplicas(t, ['backup', 'deploy'], {
    policies,
    more: () => ({
      trustedIssuers: [
        { name: 'cluster', issuerUrl: cluster.issuer, preset: 'kubernetes' },
        { name: 'github', issuerUrl: github.issuer, preset: 'github' },
      ],
      inboundGrants: {
        jwtBearer: {
          issuerPolicies: [
            { issuerRef: 'cluster', replay: 'untilExpiry', subjectBindings: bindings.cluster },
            { issuerRef: 'github', subjectBindings: bindings.github },
          ],
        },
      },
    }),
  })
  const { origin, first, second } = rig
  const at = { issuer: origin, now: Date.now }

  // The kubelet writes this file, whose token is valid for an hour.
  writeFileSync(tokenFile, await cluster.token(at, { ...pod, exp: Math.floor(Date.now() / 1000) + 3_600 }))
  const projected = readFileSync(tokenFile, 'utf8')
  const { access_token: ofPod } = await tokensOf(await requestWithGrant(at, projected))
  const assertion = await github.token(at, workflow)
  const { access_token: ofJob } = await tokensOf(await requestWithGrant({ issuer: first.origin }, assertion))

  await t.test('each workload can call only its own tool, at both replicas', async (t) => {
    for (const { origin: replica } of [first, second]) {
      t.match(await call(t, replica, ofPod, 'who_backup'), 'authorization: none')
      t.match(await call(t, replica, ofPod, 'who_deploy'), /denied/)
      t.match(await call(t, replica, ofJob, 'who_deploy'), 'authorization: none')
      t.match(await call(t, replica, ofJob, 'who_backup'), /denied/)
    }
  })

  await t.test('a pod can present its token file again, a job cannot', async (t) => {
    for (const { origin: issuer } of [first, second]) {
      t.equal((await requestWithGrant({ issuer }, projected)).status, 200)
      t.equal(await refusal(await requestWithGrant({ issuer }, assertion)), '400 invalid_grant')
    }
  })

  await t.test('audit lines contain the platform subject and the reason of a rejection', async (t) => {
    const lines = () => [first, second].flatMap((replica) => replica.lines())
    await until(() => lines().some(({ type }) => type === 'auth_client_rejected'))
    const user_id = `${cluster.issuer}#${pod.sub}`
    t.ok(
      lines().some(({ type, subjects }) => type === 'auth_token_issued' && subjects['user_id'] === user_id),
    )
    t.ok(lines().some(({ type, subjects }) => type === 'mcp_tool_call' && subjects['user_id'] === user_id))
    const rejected = lines().find(({ type }) => type === 'auth_client_rejected')
    t.equal(rejected?.metadata.extra.reason, 'the assertion has already been used')
    t.notMatch(JSON.stringify(lines()), /eyJ/)
  })

  await t.test('a binding that is removed from the file loses its token without a restart', async (t) => {
    bindings.cluster = [{ subject: 'system:serviceaccount:jobs:other', scopes: ['tools'] }]
    rig.publish(['ci', 'signer'])
    for (const { origin: issuer } of [first, second]) {
      await until(
        async () => (await refusal(await requestWithGrant({ issuer }, projected))) === '400 invalid_grant',
      )
      await t.rejects(call(t, issuer, ofPod, 'who_backup'), /401|Unauthorized|HTTP/)
      t.match(await call(t, issuer, ofJob, 'who_deploy'), 'authorization: none')
    }
  })

  for (const { gateway } of [first, second]) t.notMatch(gateway.running().output(), /eyJ/)
})
