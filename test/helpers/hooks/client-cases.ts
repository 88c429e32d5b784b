/** Golden cases of declared clients: with secrets, with keys, with a key URL, and without upstreams. */
import {
  auth,
  embedded,
  entry,
  oidcConfig,
  remote,
  resource,
  secret,
  server,
  virtual,
  world,
} from '../../hooks/resources.ts'
import { servingCertificate } from '../../hooks/serving-certificate.ts'
import { configMap, type Stored, type World } from '../../hooks/world.ts'

/** A public key on P-256. */
export const ecKey = {
  kty: 'EC',
  crv: 'P-256',
  x: 'GHtbBfEvIEV9FaDLH170Yz6p7klykjL62SXWreGRXIk',
  y: 'asuvPFb4Ynk1ogej-Y125D7hKgKHhjJkv9C6ZZW3tY8',
}

const nightly = {
  clientId: 'nightly',
  clientSecretRefs: [
    { name: 'nightly.job', key: 'now' },
    { name: 'nightly.job', key: 'next' },
  ],
  scopes: ['tools:read'],
  tokenLifespan: '5m',
}
const agent = {
  clientId: 'agent',
  jwks: { keys: [{ ...ecKey, kid: 'a' }] },
  scopes: ['tools:read', 'tools:call'],
}
const builds = {
  clientId: 'builds',
  jwksUri: 'https://ci.example.com/jwks',
  signingAlg: 'RS256',
  scopes: ['tools:call'],
}

const secrets = (): Stored => secret('nightly.job', { now: 'n'.repeat(32), next: 'x'.repeat(32) })

const authServer = (more: object): Stored =>
  resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded(more),
  })

const oidcFor = (name: string) => ({
  oidcConfigRef: {
    name: 'login',
    audience: `https://${name}.example.com`,
    resourceUrl: `https://${name}.example.com`,
  },
})
const filesWithServer = server('files', {
  ...oidcFor('files'),
  authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
})
const crmWithServer = remote('crm', { ...oidcFor('crm'), externalAuthConfigRef: { name: 'server' } })
const door = (clients: readonly object[], more: object = {}): Stored =>
  virtual({
    incomingAuth: { type: 'oidc', ...oidcFor('door') },
    authServerConfig: embedded({ clients, ...more }),
  })

/** A running server that loses the Secret of its client. */
const withoutSecret = (...objects: Stored[]): World =>
  world(oidcConfig(), secrets(), ...objects)
    .ready()
    .remove('Secret', 'nightly.job')
    .settle()

const scopes = ['tools:call']
const trustedIssuers = [
  { name: 'cluster', issuerUrl: 'https://kubernetes.default.svc.cluster.local', preset: 'kubernetes' },
  {
    name: 'ci',
    issuerUrl: 'https://ci.example.com',
    jwksUrl: 'https://10.0.0.7/keys',
    allowPrivateIPs: true,
    caBundleRef: { configMapRef: { name: 'ci-ca', key: 'root.pem' } },
    preset: 'gitlab',
  },
]
const issuerPolicies = [
  {
    issuerRef: 'cluster',
    replay: 'untilExpiry',
    maxAssertionAge: '30m',
    subjectBindings: [{ subject: 'system:serviceaccount:jobs:nightly', scopes }],
  },
  {
    issuerRef: 'ci',
    acceptedAudiences: ['https://auth.example.com'],
    subjectBindings: [{ matcher: "claims.project_id == '7'", scopes }],
  },
]
/** Settings of a server that accepts tokens of two platforms. */
export const platforms = { trustedIssuers, inboundGrants: { jwtBearer: { issuerPolicies } } }
/** Settings of a server that accepts identity assertions and tokens of one identity provider. */
const corporate = {
  clients: [agent],
  trustedIssuers: [{ name: 'corp', issuerUrl: 'https://login.example.net' }],
  inboundGrants: {
    jwtBearer: { issuerPolicies: [{ issuerRef: 'corp', acceptedAssertionTypes: ['id_jag'] }] },
  },
}
/** Settings of a server whose client authenticates as a ServiceAccount. */
const federated = {
  clients: [
    {
      clientId: 'nightly',
      scopes,
      federated: {
        issuerRef: 'cluster',
        subject: 'system:serviceaccount:jobs:nightly',
        replay: 'untilExpiry',
      },
    },
  ],
  trustedIssuers: trustedIssuers.slice(0, 1),
  upstreamProviders: [],
}
/** Settings of a server whose clients are workloads of a SPIFFE trust domain. */
const workloads = {
  spiffeTrustDomains: [
    {
      name: 'prod',
      trustDomain: 'prod.example.com',
      bundleSource: { configMapRef: { name: 'spire-bundle', key: 'bundle.spiffe' } },
    },
  ],
  inboundGrants: {
    spiffeClientAuth: [
      {
        trustDomainRef: 'prod',
        principalPattern: 'spiffe://prod.example.com/agents/*',
        clientId: 'agents',
        scopes,
      },
    ],
  },
  upstreamProviders: [],
}
const spireBundle = (): Stored => configMap('spire-bundle', { 'bundle.spiffe': '{"keys":[]}' })
const ciBundle = (): Stored => configMap('ci-ca', { 'root.pem': 'certificates' })

type Request = Record<string, unknown>

const exchanging = {
  clients: [nightly, { ...agent, subjectClients: ['https://app.example.com/client.json', 'nightly'] }],
  inboundGrants: { tokenExchange: { delegationLifespan: '5m', maxDelegationDepth: 2 } },
}

const delegating = {
  upstreamProviders: [],
  clients: [{ ...agent, tlsClientCertificateBoundAccessTokens: true }],
  tlsClientCertificateBoundAccessTokens: true,
  trustedIssuers: [{ name: 'idp', issuerUrl: 'https://idp.example.com' }],
  inboundGrants: {
    tokenExchange: {
      issuerPolicies: [
        {
          issuerRef: 'idp',
          expectedAudience: 'api://agents',
          allowedActors: ['chat'],
          allowedDelegateClients: ['agent'],
        },
      ],
    },
  },
}
const clientAuthority = (): Stored => configMap('client-ca', { 'ca.crt': servingCertificate['ca.crt'] ?? '' })
const mutualTls = {
  tls: { secretName: 'inside-tls', clientCABundleRef: { configMapRef: { name: 'client-ca' } } },
}
const inside = (): Stored => secret('inside-tls', servingCertificate)

export const clientCases: Record<string, () => Request> = {
  'MCPServer/token-exchange-grant': () =>
    world(oidcConfig(), secrets(), authServer(exchanging), filesWithServer)
      .settle()
      .request('MCPServer', 'files'),
  'MCPExternalAuthConfig/clients': () =>
    world(authServer({ clients: [nightly, agent] }), secrets())
      .settle()
      .request('MCPExternalAuthConfig', 'server'),
  'MCPExternalAuthConfig/client-secret-missing': () =>
    world(authServer({ clients: [nightly, agent] }), secret('nightly.job', { now: 'n'.repeat(32) }))
      .settle()
      .request('MCPExternalAuthConfig', 'server'),
  'MCPServer/clients': () =>
    world(oidcConfig(), secrets(), authServer({ clients: [nightly, agent, builds] }), filesWithServer)
      .settle()
      .request('MCPServer', 'files'),
  'MCPServer/client-secret-missing-keeps-children': () =>
    withoutSecret(authServer({ clients: [nightly] }), filesWithServer).request('MCPServer', 'files'),
  'MCPRemoteProxy/clients': () =>
    world(oidcConfig(), authServer({ clients: [agent, builds], upstreamProviders: [] }), crmWithServer)
      .settle()
      .request('MCPRemoteProxy', 'crm'),
  'MCPExternalAuthConfig/platforms': () =>
    world(authServer(platforms), ciBundle()).settle().request('MCPExternalAuthConfig', 'server'),
  'MCPServer/platforms': () =>
    world(oidcConfig(), authServer(platforms), ciBundle(), filesWithServer)
      .settle()
      .request('MCPServer', 'files'),
  'MCPExternalAuthConfig/spiffe-bundle-missing': () =>
    world(authServer(workloads)).settle().request('MCPExternalAuthConfig', 'server'),
  'MCPServer/spiffe-clients': () =>
    world(oidcConfig(), authServer(workloads), spireBundle(), filesWithServer)
      .settle()
      .request('MCPServer', 'files'),
  'VirtualMCPServer/spiffe-clients': () =>
    world(oidcConfig(), spireBundle(), door([], { ...workloads, clients: undefined }))
      .ready()
      .request('VirtualMCPServer', 'door'),
  'VirtualMCPServer/federated-clients': () =>
    world(oidcConfig(), door([], federated)).ready().request('VirtualMCPServer', 'door'),
  'MCPServer/identity-assertions': () =>
    world(oidcConfig(), authServer(corporate), filesWithServer).settle().request('MCPServer', 'files'),
  'VirtualMCPServer/platforms': () =>
    world(oidcConfig(), ciBundle(), door([], { ...platforms, clients: undefined, upstreamProviders: [] }))
      .ready()
      .request('VirtualMCPServer', 'door'),
  'VirtualMCPServer/external-exchange': () =>
    world(
      oidcConfig(),
      inside(),
      clientAuthority(),
      virtual({
        ...mutualTls,
        incomingAuth: { type: 'oidc', ...oidcFor('door') },
        authServerConfig: embedded(delegating),
      }),
    )
      .ready()
      .request('VirtualMCPServer', 'door'),
  'MCPServer/client-certificates': () =>
    world(
      oidcConfig(),
      inside(),
      clientAuthority(),
      authServer(delegating),
      server('files', {
        ...mutualTls,
        ...oidcFor('files'),
        authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
      }),
    )
      .settle()
      .request('MCPServer', 'files'),
  'VirtualMCPServer/clients': () =>
    world(oidcConfig(), secrets(), door([nightly, agent, builds]))
      .ready()
      .request('VirtualMCPServer', 'door'),
  'VirtualMCPServer/clients-without-upstreams': () =>
    world(
      oidcConfig(),
      auth.inject,
      auth.xaa,
      auth.exchange,
      auth.bearer,
      entry('injected', { externalAuthConfigRef: { name: 'inject' } }),
      entry('crossed', { externalAuthConfigRef: { name: 'xaa' } }),
      entry('exchanged', { externalAuthConfigRef: { name: 'exchange' } }),
      entry('stored', { externalAuthConfigRef: { name: 'bearer' } }),
      door([{ ...agent, resources: ['https://door.example.com'] }], { upstreamProviders: [] }),
    )
      .ready()
      .request('VirtualMCPServer', 'door'),
  'VirtualMCPServer/client-secret-missing-keeps-children': () =>
    withoutSecret(door([nightly])).request('VirtualMCPServer', 'door'),
}
