/**
 * Role mappings of cloudSts on a server that accepts several issuers: the claim of the right issuer selects the role, and
 * the group prefix applies to it.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadProxyFile, resolveProxyFile } from '../../../runtime/config/index.ts'
import { type Authenticator, makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { makeOutgoing } from '../../../runtime/outgoing/index.ts'
import { incomingFor } from '../../../runtime/proxy/run/incoming-auth.ts'
import { incomingConfig } from '../../../runtime/vmcp/server/incoming-config.ts'
import { startIssuer } from '../../helpers/authserver/several-issuers.ts'
import type { TokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { testRequest } from '../../helpers/outgoing/outgoing.ts'
import { startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const role = (name: string) => `arn:aws:iam::123456789012:role/${name}`
const strategyWith = (block: object) => ({
  type: 'cloud_sts' as const,
  cloudSts: { region: 'eu-west-1', ...block },
})
const claims = strategyWith({
  roleClaim: 'entitlements',
  roleMappings: [
    { roleArn: role('own'), claim: 'admin' },
    { roleArn: role('partner'), claim: 'b/admin' },
  ],
})

type Strategy = ReturnType<typeof strategyWith>
interface Issuers {
  readonly a: TokenIssuer
  readonly b: TokenIssuer
}
const further = ({ issuer, audience, jwksUrl }: TokenIssuer) => ({
  issuer,
  audience,
  jwksUrl,
  jwksAllowPrivateIp: true,
  subjectPrefix: 'b:',
  groupPrefix: 'b/',
})

/** Reads the configuration of each program, and returns its authenticator. */
const programs: Readonly<Record<string, (issuers: Issuers, strategy: Strategy) => Authenticator>> = {
  'virtual server, strategy of a backend': ({ a, b }, strategy) => {
    const incomingAuth = { ...a.incomingAuth, issuers: [further(b)] }
    const outgoingAuth = { source: 'inline', backends: { aws: strategy } }
    const config = vmcpConfig({ aws: 'http://127.0.0.1:1' }, { incomingAuth, outgoingAuth })
    return makeAuthenticator(incomingConfig(config, {}, silentLog), { log: silentLog })
  },
  'virtual server, default strategy': ({ a, b }, strategy) => {
    const incomingAuth = { ...a.incomingAuth, issuers: [further(b)] }
    const outgoingAuth = { source: 'inline', default: strategy }
    const config = vmcpConfig({ aws: 'http://127.0.0.1:1' }, { incomingAuth, outgoingAuth })
    return makeAuthenticator(incomingConfig(config, {}, silentLog), { log: silentLog })
  },
  proxy: ({ a, b }, outgoingAuth) => {
    const { issuer, audience, jwksUrl } = a
    const file = join(mkdtempSync(join(tmpdir(), 'cloud-sts-issuers-')), 'proxy.json')
    const oidc = { issuer, audience, jwksUrl }
    const content = {
      name: 'aws',
      targetUri: 'http://127.0.0.1:1',
      oidc,
      issuers: [further(b)],
      outgoingAuth,
    }
    writeFileSync(file, JSON.stringify(content))
    const make = incomingFor(resolveProxyFile('aws', loadProxyFile(file), {}, {}), silentLog)
    if (!make) throw new Error('no authenticator')
    return make({ port: 4483, url: 'http://127.0.0.1:4483' })
  },
}

async function rig(
  t: Test,
  make: (issuers: Issuers, strategy: Strategy) => Authenticator,
  strategyFor: (issuers: Issuers) => Strategy,
) {
  const [a, b] = await Promise.all([startIssuer(t), startIssuer(t)])
  const block = strategyFor({ a, b })
  const authenticator = make({ a, b }, block)
  const sts = await startLoopback(() => ({
    headers: { 'content-type': 'text/xml' },
    body: `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
      <AccessKeyId>AK</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
      <Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
      </AssumeRoleWithWebIdentityResponse>`,
  }))
  const outgoing = makeOutgoing({ stsEndpoint: () => sts.url })
  t.teardown(() => Promise.all([authenticator.close(), sts.close(), outgoing.close()]))
  const strategy = outgoing.strategy(block)
  /** Returns the form that the token service received, or the error code. */
  const assume = async (issuer: TokenIssuer, tokenClaims: Record<string, unknown>) => {
    const token = await issuer.token('alice', tokenClaims)
    const caller = await authenticator.authenticate(`Bearer ${token}`)
    const before = sts.seen.length
    const apply = async (): Promise<void> => strategy.apply(testRequest(), caller)
    const code: unknown = await apply().catch((error: { code?: string }) => error.code)
    const form = sts.seen[before]?.form
    return {
      role: code ?? form?.get('RoleArn'),
      session: form?.get('RoleSessionName'),
      isOwnToken: form?.get('WebIdentityToken') === token,
    }
  }
  return { a, b, assume }
}

for (const [name, make] of Object.entries(programs)) {
  await t.test(`${name}: roleClaim is read with the prefix of its issuer`, async (t) => {
    const { a, b, assume } = await rig(t, make, () => claims)
    const own = await assume(a, { entitlements: ['admin'] })
    const partner = await assume(b, { entitlements: ['admin'] })
    t.match(own, { role: role('own'), session: 'alice', isOwnToken: true })
    t.match(partner, { role: role('partner'), isOwnToken: true })
    t.match(partner.session, /^b-alice-[0-9a-f]{16}$/, 'the session name contains the subject prefix')
    for (const [issuer, entitlements, expected] of [
      [a, ['b/admin'], 'BACKEND_ROLE_DENIED'],
      [a, { 'b/admin': {} }, 'BACKEND_ROLE_DENIED'],
      [a, { admin: {} }, role('own')],
      [b, { admin: {} }, role('partner')],
      [b, ['b/admin'], 'BACKEND_ROLE_DENIED'],
      [b, 'admin', 'BACKEND_ROLE_DENIED'],
    ] as const) {
      const found = await assume(issuer, { entitlements })
      t.equal(found.role, expected, `${issuer === a ? 'first' : 'second'} ${JSON.stringify(entitlements)}`)
    }
  })
}

await t.test('a matcher sees the issuer in claims.iss', async (t) => {
  const make = programs['proxy']
  if (!make) throw new Error('no proxy')
  const byIssuer = ({ a }: Issuers): Strategy =>
    strategyWith({ roleMappings: [{ roleArn: role('own'), matcher: `claims.iss == "${a.issuer}"` }] })
  const { a, b, assume } = await rig(t, make, byIssuer)
  t.equal((await assume(a, {})).role, role('own'))
  t.equal((await assume(b, {})).role, 'BACKEND_ROLE_DENIED')
})

await t.test('a reload with another roleClaim changes which claims get the prefix', async (t) => {
  const [a, b] = await Promise.all([startIssuer(t), startIssuer(t)])
  const config = (outgoingAuth: object) => ({
    outgoingAuth: { source: 'inline', ...outgoingAuth },
    incomingAuth: {
      ...a.incomingAuth,
      issuers: [further(b)],
      authz: {
        type: 'cedar',
        policies: [
          'permit(principal, action, resource) when { principal.claim_entitlements.contains("b/admin") };',
        ],
      },
    },
  })
  const backends = { aws: 'http://127.0.0.1:1' }
  const vmcp = await startTestVmcp(backends, config({}))
  t.teardown(() => vmcp.close())
  const isPermitted = async (): Promise<boolean> => {
    const token = await b.token('alice', { entitlements: ['admin'] })
    const session = await openSession(vmcp.url, { headers: { authorization: `Bearer ${token}` } })
    return (await session.request('tools/call', { name: 'aws_echo' })).status === 200
  }
  t.equal(await isPermitted(), false)
  vmcp.reload(vmcpConfig(backends, config({ backends: { aws: claims } })))
  t.equal(await isPermitted(), true)
  vmcp.reload(vmcpConfig(backends, config({})))
  t.equal(await isPermitted(), false)
})
