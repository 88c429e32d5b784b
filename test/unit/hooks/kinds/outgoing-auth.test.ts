/** Credentials for backends: which configuration applies, and what it becomes. */
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import {
  auth,
  embedded,
  entry,
  oidcConfig,
  resource,
  server,
  virtual,
  world,
} from '../../../hooks/resources.ts'
import { conditionOf, configOf, environment, own, ref, statusOf } from './outgoing.ts'

t.test(
  "outgoingAuth: an explicit entry wins over the backend’s own reference, then the default applies; inline uses only the resource's settings",
  async (t) => {
    proves(
      '3.spec.outgoingAuth',
      '3.spec.outgoingAuth.source.discovered',
      '3.spec.outgoingAuth.source.inline',
      '3.spec.outgoingAuth.default',
      '3.spec.outgoingAuth.backends',
      '3.spec.outgoingAuth.backends.externalAuthConfigRef',
      '3.config.outgoingAuth',
      '3.config.outgoingAuth.default',
      '3.config.outgoingAuth.backends',
      '3.auth.outgoing',
      '3.status.discoveredBackends.authConfigRef',
      '3.status.discoveredBackends.authType',
      '2.reference.MCPServerEntry',
      '2.headerInjection.valueSecretRef',
      '2.bearerToken.tokenSecretRef',
    )
    for (const source of ['discovered', 'inline']) {
      const w = world(
        auth.header,
        auth.bearer,
        auth.none,
        entry('listed', own('header')),
        entry('own', own('header')),
        entry('plain'),
        entry('asked', own('header')),
        virtual({
          outgoingAuth: {
            source,
            default: ref('bearer'),
            backends: { listed: ref('none'), asked: { type: 'discovered' } },
          },
        }),
      ).ready()
      const { outgoingAuth } = configOf(w)
      t.equal(outgoingAuth.source, source)
      const header = {
        type: 'header_injection',
        headerInjection: {
          headerName: 'X-API-Key',
          headerValueEnv: 'GATEHOUSE_HEADER_INJECTION_VALUE_HEADER',
        },
      }
      t.strictSame(outgoingAuth.backends, {
        asked: header,
        listed: { type: 'unauthenticated' },
        ...(source === 'discovered' && { own: header }),
      })
      t.strictSame(outgoingAuth.default, {
        type: 'bearer_token',
        bearerToken: { tokenEnv: 'GATEHOUSE_BEARER_TOKEN_BEARER' },
      })
      t.strictSame(
        statusOf(w, 'VirtualMCPServer', 'door').discoveredBackends.map(
          ({ name, authConfigRef, authType }) => [name, authConfigRef, authType],
        ),
        [
          ['asked', 'header', 'header_injection'],
          ['listed', 'none', 'unauthenticated'],
          source === 'discovered' ? ['own', 'header', 'header_injection'] : ['own', 'bearer', 'bearer_token'],
          ['plain', 'bearer', 'bearer_token'],
        ],
      )
      const env = environment(w)
      t.strictSame(env.get('GATEHOUSE_HEADER_INJECTION_VALUE_HEADER')?.valueFrom, {
        secretKeyRef: { name: 'tokens', key: 'api', optional: true },
      })
      t.match(env.get('GATEHOUSE_BEARER_TOKEN_BEARER'), {
        valueFrom: { secretKeyRef: { name: 'tokens', key: 'bearer', optional: true } },
      })
    }
  },
)

t.test('outgoingAuth: inline keeps the static backends of the resource and sets their group', async (t) => {
  proves('3.config.backends.mode', '3.config.backends.metadata', '3.config.backends.name')
  const backends = [
    {
      name: 'legacy',
      url: 'https://legacy.example.com/sse',
      transport: 'sse',
      metadata: { group: 'mine', a: 'b' },
    },
  ]
  const inline = configOf(
    world(entry('e'), virtual({ outgoingAuth: { source: 'inline' }, config: { backends } })).ready(),
  )
  t.strictSame(
    inline.backends.map(({ name }) => name),
    ['e', 'legacy'],
  )
  t.match(inline.backends[1], { metadata: { group: 'tools', a: 'b' } })
  const discovered = configOf(world(entry('e'), virtual({ config: { backends } })).ready())
  t.strictSame(
    discovered.backends.map(({ name }) => name),
    ['e'],
  )
})

t.test(
  'outgoingAuth: a backend without working credentials is excluded, and never gets the default',
  async (t) => {
    const w = world(
      auth.bearer,
      entry('broken', own('nowhere')),
      entry('fine'),
      virtual({ outgoingAuth: { default: ref('bearer'), backends: { broken: ref('nowhere') } } }),
    ).ready()
    t.strictSame(
      configOf(w).backends.map(({ name }) => name),
      ['fine'],
    )
    t.match(conditionOf(w, 'VirtualMCPServer', 'door', 'BackendAuthConfig-broken'), {
      status: 'False',
      reason: 'ConversionFailed',
    })
    t.match(statusOf(w, 'VirtualMCPServer', 'door').discoveredBackends[0], {
      name: 'broken',
      status: 'unavailable',
    })
    t.equal(statusOf(w, 'VirtualMCPServer', 'door').discoveredBackends[0]?.authType, undefined, 'not known')
    t.equal(statusOf(w, 'VirtualMCPServer', 'door').phase, 'Degraded')
  },
)

t.test('outgoingAuth: a broken default excludes every backend that depends on it', async (t) => {
  const w = world(entry('plain'), virtual({ outgoingAuth: { default: ref('nowhere') } })).ready()
  t.strictSame(configOf(w).backends, [])
  t.match(conditionOf(w, 'VirtualMCPServer', 'door', 'DefaultAuthConfig'), { status: 'False' })
})

t.test('references: an object of another namespace is treated as missing', async (t) => {
  proves('2.kind.same-namespace', '3.kind.same-namespace')
  const w = world(entry('e', own('header')), virtual()).settle()
  const request = w.request('VirtualMCPServer', 'door') as {
    related: Record<string, Record<string, unknown>>
  }
  const foreign = { ...auth.header, metadata: { ...auth.header.metadata, namespace: 'elsewhere' } }
  request.related['MCPExternalAuthConfig.gatehouse.dev/v1beta1'] = {
    'elsewhere/header': foreign,
    'team/header': foreign,
  }
  const status = w.hooks.byKind('VirtualMCPServer')?.sync(request).status
  t.match(
    ((status?.['conditions'] ?? []) as { type: string }[]).find(
      ({ type }) => type === 'DiscoveredAuthConfig-e',
    ),
    { status: 'False', message: /does not exist/ },
  )
})

t.test(
  'tokenExchange: full token type, secret in a variable, subject from the first upstream of an embedded server',
  async (t) => {
    proves(
      '2.tokenExchange.tokenUrl',
      '2.tokenExchange.audience',
      '2.tokenExchange.clientId',
      '2.tokenExchange.clientSecretRef',
      '2.tokenExchange.scopes',
      '2.tokenExchange.subjectProviderName.default',
      '2.cloudSts.subjectProviderName.default',
      '3.config.outgoingAuth.tokenExchange.clientId',
      '3.config.outgoingAuth.tokenExchange.clientSecret',
      '3.config.outgoingAuth.tokenExchange.subjectProviderName',
      '3.config.outgoingAuth.tokenExchange.subjectTokenType',
      '3.config.outgoingAuth.cloudSts',
      '3.auth.outgoing.subject',
    )
    const two = embedded()
    const upstreams = [
      ...(two as { upstreamProviders: object[] }).upstreamProviders,
      {
        name: 'second',
        type: 'oauth2',
        oauth2Config: { authorizationEndpoint: 'https://a', tokenEndpoint: 'https://t', clientId: 'c' },
      },
    ]
    const w = world(
      oidcConfig(),
      auth.exchange,
      auth.sts,
      entry('x', own('exchange')),
      entry('s', own('sts')),
      virtual({
        incomingAuth: {
          type: 'oidc',
          oidcConfigRef: {
            name: 'login',
            audience: 'https://d.example.com',
            resourceUrl: 'https://d.example.com',
          },
        },
        authServerConfig: { ...two, upstreamProviders: upstreams },
      }),
    ).ready()
    const { backends } = configOf(w).outgoingAuth
    t.strictSame(backends?.['x'], {
      type: 'token_exchange',
      tokenExchange: {
        tokenUrl: 'https://login.example.com/token',
        audience: 'backend',
        clientId: 'door',
        clientSecretEnv: 'GATEHOUSE_TOKEN_EXCHANGE_CLIENT_SECRET_EXCHANGE',
        scopes: ['read'],
        subjectProviderName: 'corp',
        subjectTokenType: 'urn:ietf:params:oauth:token-type:id_token',
      },
    })
    t.match(backends?.['s'], {
      type: 'cloud_sts',
      cloudSts: { subjectProviderName: 'corp', region: 'eu-west-1' },
    })
    t.match(conditionOf(w, 'VirtualMCPServer', 'door', 'IdentitySynthesized'), {
      status: 'True',
      message: /second/,
    })
  },
)

t.test('xaa: the upstream that issues the id token must be unambiguous', async (t) => {
  const base = embedded() as { upstreamProviders: { name: string }[] }
  const upstreams = [...base.upstreamProviders, { ...base.upstreamProviders[0], name: 'other' }]
  const w = world(
    oidcConfig(),
    auth.xaa,
    entry('x', own('xaa')),
    virtual({
      incomingAuth: {
        type: 'oidc',
        oidcConfigRef: {
          name: 'login',
          audience: 'https://d.example.com',
          resourceUrl: 'https://d.example.com',
        },
      },
      authServerConfig: { ...base, upstreamProviders: upstreams },
    }),
  ).ready()
  t.match(conditionOf(w, 'VirtualMCPServer', 'door', 'DiscoveredAuthConfig-x'), {
    reason: 'AmbiguousSubjectProvider',
    message: /corp, other/,
  })
})

t.test('disableUpstreamTokenInjection: rejected together with token exchange or cloudSts', async (t) => {
  proves('2.error.disableUpstreamTokenInjection')
  const stripping = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({ disableUpstreamTokenInjection: true }),
  })
  const references = {
    oidcConfigRef: { name: 'login', audience: 'https://f.example.com', resourceUrl: 'https://f.example.com' },
    authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
  }
  for (const [name, config] of [
    ['exchange', auth.exchange],
    ['sts', auth.sts],
  ] as const) {
    const w = world(
      oidcConfig(),
      stripping,
      config,
      server('files', { ...references, ...own(name) }),
    ).settle()
    t.match(statusOf(w, 'MCPServer', 'files'), { phase: 'Failed' }, name)
    t.match(conditionOf(w, 'MCPServer', 'files', 'AuthServerRefValidated'), {
      reason: 'AuthServerRefInvalidConfig',
      message: /disableUpstreamTokenInjection/,
    })
  }
  const v = world(
    oidcConfig(),
    auth.exchange,
    entry('x', own('exchange')),
    virtual({
      incomingAuth: { type: 'oidc', oidcConfigRef: references.oidcConfigRef },
      authServerConfig: embedded({ disableUpstreamTokenInjection: true }),
    }),
  ).ready()
  t.match(conditionOf(v, 'VirtualMCPServer', 'door', 'DiscoveredAuthConfig-x'), {
    status: 'False',
    message: /disableUpstreamTokenInjection/,
  })
})
