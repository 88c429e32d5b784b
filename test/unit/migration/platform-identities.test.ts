/** Trusted issuers and SPIFFE workloads of an embedded authorization server, field by field. */
import t from 'tap'
import { convert, object, specs } from './converted.ts'

t.test('objects: identities of platforms are converted where they match', async (t) => {
  const pattern = (path: string) => `spiffe://example.org/${path}`
  const workload = {
    trustDomainRef: 'prod',
    principalPattern: pattern('agents/*'),
    clientId: 'agents',
    methods: ['spiffe_jwt', 'spiffe_x509'],
    scopes: ['openid', 'tools:read'],
    audiences: ['mcp'],
    grantTypes: ['client_credentials'],
  }
  const file = { configMapName: 'spire', configMapKey: 'bundle.json' }
  const domain = { name: 'prod', trustDomain: 'example.org', methods: ['spiffe_jwt'] }
  const authServerConfig = {
    issuer: 'https://a.example.com',
    upstreamProviders: [],
    trustedIssuers: [
      { name: 'ci', issuerUrl: 'https://ci.example.com', insecureAllowHTTP: true },
      { name: 'unused', issuerUrl: 'https://unused.example.com' },
    ],
    spiffeTrustDomains: [
      { ...domain, bundleSource: { type: 'file', file } },
      { ...domain, name: 'api', trustDomain: 'api', bundleSource: { type: 'workload_api' } },
      {
        ...domain,
        name: 'x509',
        trustDomain: 'x',
        methods: ['spiffe_x509'],
        bundleSource: { type: 'file', file },
      },
      { ...domain, name: 'spare', trustDomain: 'spare', bundleSource: { type: 'file', file } },
    ],
    inboundGrants: {
      jwtBearer: {
        issuerPolicies: [{ issuerRef: 'ci', maxAssertionAge: '10m', subjectBindings: [{ subject: 'job' }] }],
      },
      spiffeClientAuth: [
        workload,
        { ...workload, clientId: 'x', principalPattern: pattern('x'), methods: ['spiffe_x509'] },
        {
          ...workload,
          clientId: 'y',
          principalPattern: pattern('y'),
          grantTypes: ['urn:ietf:params:oauth:grant-type:token-exchange'],
        },
        { ...workload, clientId: 'z', principalPattern: pattern('z'), scopes: ['openid'] },
      ],
    },
  }
  const oidcConfigRef = {
    name: 'login',
    audience: 'https://a.example.com/mcp',
    scopes: ['openid', 'tools:read'],
  }
  const migration = convert([
    object('VirtualMCPServer', {
      groupRef: { name: 'g' },
      incomingAuth: { type: 'oidc', oidcConfigRef },
      authServerConfig,
    }),
  ])
  const at = 'spec.authServerConfig'
  t.strictSame(
    Object.fromEntries(migration.documents[0]?.rows.map(({ field, effect }) => [field, effect]) ?? []),
    {
      [`${at}.inboundGrants.jwtBearer.issuerPolicies[0].subjectBindings[].scopes`]: 'differs',
      [`${at}.spiffeTrustDomains[1]`]: 'lost',
      [`${at}.spiffeTrustDomains[2]`]: 'lost',
      [`${at}.spiffeTrustDomains[3]`]: 'lost',
      [`${at}.inboundGrants.spiffeClientAuth[1]`]: 'lost',
      [`${at}.inboundGrants.spiffeClientAuth[2]`]: 'lost',
      [`${at}.inboundGrants.spiffeClientAuth[3]`]: 'lost',
      [`${at}.inboundGrants.spiffeClientAuth[agents]`]: 'differs',
      [`${at}.trustedIssuers[0].insecureAllowHTTP`]: 'lost',
      [`${at}.trustedIssuers[1]`]: 'lost',
    },
  )
  t.strictSame(Object(specs(migration)[0]?.spec).authServerConfig, {
    issuer: 'https://a.example.com',
    upstreamProviders: [],
    trustedIssuers: [{ name: 'ci', issuerUrl: 'https://ci.example.com' }],
    spiffeTrustDomains: [
      {
        name: 'prod',
        trustDomain: 'example.org',
        bundleSource: { configMapRef: { name: 'spire', key: 'bundle.json' } },
      },
    ],
    inboundGrants: {
      jwtBearer: {
        issuerPolicies: [
          {
            issuerRef: 'ci',
            maxAssertionAge: '10m',
            subjectBindings: [{ subject: 'job', scopes: ['tools:read'] }],
          },
        ],
      },
      spiffeClientAuth: [
        {
          trustDomainRef: 'prod',
          principalPattern: 'spiffe://example.org/agents/*',
          clientId: 'agents',
          scopes: ['tools:read'],
        },
      ],
    },
  })
})
