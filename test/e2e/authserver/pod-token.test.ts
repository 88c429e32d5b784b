/**
 * A pod's token from a real API server: the TokenRequest that a kubelet sends for a projected ServiceAccount token, and
 * the API server's own key set. Two replicas of the authorization server share one Redis.
 */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { refusal, tokensOf } from '../../helpers/authserver/authserver.ts'
import { requestWithGrant } from '../../helpers/authserver/platform.ts'
import { startReplicas } from '../../helpers/authserver/replicas.ts'
import { kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { missingRedisTls } from '../../helpers/redis.ts'

t.setTimeout(240_000)

/** Issuer of the ServiceAccount tokens of the test's API server. */
const issuerUrl = 'https://kubernetes.default.svc'

t.test(
  'two replicas: a pod gets a token with its projected ServiceAccount token, and calls the tool that the policy permits',
  { skip: kubeMissing() || missingRedisTls },
  async (t) => {
    const kube = await startKubeApiserver(t)
    for (const args of [
      ['create', 'namespace', 'jobs'],
      ['create', 'serviceaccount', 'nightly', '-n', 'jobs'],
      ['create', 'serviceaccount', 'other', '-n', 'jobs'],
    ])
      kube.must(args)
    const adminToken = join(dirname(kube.kubeconfig), 'admin-token')
    writeFileSync(adminToken, kube.token)
    const subject = 'system:serviceaccount:jobs:nightly'
    const { origin, first, second } = await startReplicas(t, ['backup', 'deploy'], {
      policies: () => [
        `permit(principal == Client::"${issuerUrl}#${subject}", action, resource == Tool::"who_backup");`,
      ],
      more: () => ({
        trustedIssuers: [
          {
            name: 'cluster',
            issuerUrl,
            jwksUrl: `${kube.url}/openid/v1/jwks`,
            caBundlePath: kube.authority,
            jwksAuthTokenPath: adminToken,
            allowPrivateIPs: true,
            preset: 'kubernetes',
          },
        ],
        inboundGrants: {
          jwtBearer: {
            issuerPolicies: [
              {
                issuerRef: 'cluster',
                replay: 'untilExpiry',
                subjectBindings: [{ subject, scopes: ['tools'] }],
              },
            ],
          },
        },
      }),
    })
    const tokenOf = (account: string, audience: string): string =>
      kube.must(['create', 'token', account, '-n', 'jobs', `--audience=${audience}`]).trim()
    const request = (replica: string, assertion: string) => requestWithGrant({ issuer: replica }, assertion)

    const { access_token: token } = await tokensOf(await request(first.origin, tokenOf('nightly', origin)))
    for (const replica of [first, second]) {
      const client = new Client({ name: 'job', version: '1' })
      const requestInit = { headers: { authorization: `Bearer ${token}` } }
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${replica.origin}/mcp`), { requestInit }),
      )
      t.match(JSON.stringify(await client.callTool({ name: 'who_backup' })), 'authorization: none')
      await t.rejects(client.callTool({ name: 'who_deploy' }), /denied/)
      await client.close()
      const rejected = [tokenOf('other', origin), tokenOf('nightly', issuerUrl)]
      for (const assertion of rejected)
        t.equal(await refusal(await request(replica.origin, assertion)), '400 invalid_grant')
      t.notMatch(replica.gateway.running().output(), /eyJ/)
    }
  },
)
