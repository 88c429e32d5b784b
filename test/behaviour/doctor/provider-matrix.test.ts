/**
 * `gatehouse doctor --login` at each identity provider. The doctor signs in like an ordinary MCP client, so the provider's
 * differences appear as findings with the provider's own fix.
 */
import t, { type Test } from 'tap'
import { walk } from '../../helpers/authserver/oidc-provider.ts'
import { shown } from '../../helpers/doctor/cases.ts'
import { clientId, clientSecret, type ProviderProfile } from '../../helpers/oauth/providers/profile.ts'
import { providerProfiles } from '../../helpers/oauth/providers/profiles.ts'
import { type FakeProvider, startProvider } from '../../helpers/oauth/providers/provider.ts'
import { startTarget } from '../../helpers/oauth/providers/target.ts'
import { examineRemote } from '../../../runtime/tools/doctor/remote/examine.ts'
import type { Finding } from '../../../runtime/tools/doctor/report/finding.ts'

t.setTimeout(120_000)

async function examine(
  t: Test,
  profile: ProviderProfile,
  prepare: (provider: FakeProvider) => void = () => {},
  issuerOf: (provider: FakeProvider) => string = ({ issuer }) => issuer,
): Promise<readonly Finding[]> {
  const provider = await startProvider(profile)
  const target = await startTarget(provider, { scopes: ['read'], issuer: issuerOf(provider) })
  t.teardown(() => Promise.all([provider.close(), target.close()]))
  prepare(provider)
  const { findings } = await examineRemote({
    target: new URL(`${target.url}/mcp`),
    redirectUri: 'http://localhost:0/callback',
    provider: profile.id,
    clientId,
    login: {
      clientSecret: profile.clientAuth === 'none' ? undefined : clientSecret,
      notify: () => {},
      async open(url) {
        const back = new URL(url).searchParams.get('redirect_uri') ?? ''
        void walk(url, back)
          .then(async (to) => (await fetch(to)).text())
          .catch(() => {})
        return true
      },
      timeoutMs: 30_000,
      signal: new AbortController().signal,
    },
  })
  return findings
}

const failures = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ result }) => result === 'failed' || result === 'unknown')

const row = (findings: readonly Finding[], id: string): Finding | undefined =>
  findings.find((finding) => finding.id === id)

for (const profile of Object.values(providerProfiles)) {
  const { code, warning, fix, renews } = profile.doctor
  await t.test(`${profile.id}: login, session and renewal`, async (t) => {
    const findings = await examine(t, profile)
    const [failure] = failures(findings)
    t.equal(failure?.code, code, shown(findings))
    const warned = findings.find((finding) => finding.result === 'warning' && finding.code === warning)
    t.equal(warned?.code, warning, shown(findings))
    t.match((failure ?? warned)?.fix?.text, fix, shown(findings))
    if (renews) t.match(row(findings, 'renewal'), { result: 'ok' }, shown(findings))
  })

  if (!renews) continue
  await t.test(`${profile.id}: the refresh token is revoked`, async (t) => {
    const findings = await examine(t, profile, (provider) => {
      provider.beforeRefresh = async () => provider.revoke()
    })
    t.match(row(findings, 'renewal'), { result: 'failed', code: 'refresh.refused' }, shown(findings))
    t.ok(row(findings, 'renewal')?.observed?.includes(profile.revokedText))
  })

  await t.test(`${profile.id}: the token endpoint has an outage at the renewal`, async (t) => {
    const findings = await examine(t, profile, (provider) => (provider.outage = profile.outage))
    t.match(row(findings, 'renewal'), { result: 'failed', code: 'code.unreachable' }, shown(findings))
  })
}

await t.test('entra: the metadata for all tenants contains a template as issuer', async (t) => {
  const common = ({ api }: FakeProvider): string => `${api}/common/v2.0`
  const findings = await examine(t, providerProfiles.entra, undefined, common)
  const [failure] = failures(findings)
  t.match(failure, { code: 'issuer.mismatch', fix: { text: /with the tenant id/ } }, shown(findings))
  t.notMatch(failure?.fix?.text, /\{tenantid\}/, 'the template is not suggested as a value')
})

await t.test('google: the resource writes the issuer with a slash', async (t) => {
  const findings = await examine(t, providerProfiles.google, undefined, ({ issuer }) => `${issuer}/`)
  t.equal(failures(findings).length, 0, shown(findings))
  t.match(row(findings, 'issuer'), {
    result: 'warning',
    code: 'issuer.slash',
    fix: { text: /without a trailing slash/ },
  })
})
