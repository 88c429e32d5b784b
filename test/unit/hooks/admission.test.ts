/** Manifests that the webhook rejects or accepts, by kind. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { proves } from '../../helpers/proves.ts'
import {
  auth,
  authzConfig,
  embedded,
  entry,
  oidc,
  oidcConfig,
  remote,
  resource,
  server,
  telemetryConfig,
  toolConfig,
  virtual,
} from '../../hooks/resources.ts'

const external = (type: string, config: object) =>
  resource('MCPExternalAuthConfig', 'x', { type, [type]: config })
const workflow = (spec: object) =>
  resource('VirtualMCPCompositeToolDefinition', 'w', {
    name: 'w',
    description: 'd',
    steps: [{ id: 'a', tool: 'x.a' }],
    ...spec,
  })
const door = (config: object) => virtual({ config })
const servedBy = {
  ...oidc,
  authzConfig: {
    type: 'inline',
    inline: { policies: ['permit(principal, action, resource);'], primaryUpstreamProvider: 'other' },
  },
}

/** Manifest, and the location of its only problem. */
const refused: readonly [string, object, RegExp][] = [
  [
    'cloudSts without role',
    external('cloudSts', { region: 'eu-west-1' }),
    /fallbackRoleArn and roleMappings/,
  ],
  [
    'cloudSts with a matcher that is not CEL',
    external('cloudSts', {
      region: 'eu-west-1',
      roleMappings: [{ roleArn: 'arn:aws:iam::123456789012:role/x', matcher: 'claims.(' }],
    }),
    /spec\.cloudSts\.roleMappings\[0\]\.matcher: not a CEL expression/,
  ],
  [
    'two blocks',
    resource('MCPExternalAuthConfig', 'x', {
      type: 'unauthenticated',
      bearerToken: { tokenSecretRef: { name: 'a', key: 'b' } },
    }),
    /bearerToken must be set exactly/,
  ],
  [
    'a secret without a client',
    external('tokenExchange', {
      tokenUrl: 'https://x',
      audience: 'a',
      clientSecretRef: { name: 'a', key: 'b' },
    }),
    /clientId: is required/,
  ],
  [
    'an injected Host header',
    external('headerInjection', { headerName: 'Host', valueSecretRef: { name: 'a', key: 'b' } }),
    /headerName/,
  ],
  [
    'an issuer with credentials',
    external('embeddedAuthServer', embedded({ issuer: 'https://u:p@login.example.com' })),
    /issuer/,
  ],
  [
    'an entry on loopback',
    entry('e', { remoteUrl: 'http://127.0.0.1:9/mcp' }),
    /spec\.remoteUrl: points to a loopback/,
  ],
  ['a proxy to a private address', remote('p', { remoteUrl: 'http://10.0.0.1/mcp' }), /allowPrivateEndpoint/],
  [
    'a header twice',
    remote('p', {
      headerForward: {
        addPlaintextHeaders: { 'X-A': '1' },
        addHeadersFromSecret: [{ headerName: 'x-a', valueSecretRef: { name: 'a', key: 'b' } }],
      },
    }),
    /sets the same header/,
  ],
  [
    'a variable twice',
    server('s', { env: [{ name: 'A', value: '1' }], secrets: [{ name: 'x', key: 'A' }] }),
    /the variable A is set twice/,
  ],
  [
    'an inline policy with a syntax error',
    server('s', {
      authzConfig: {
        type: 'inline',
        inline: { policies: ['permit(principal, action, resource);', 'permit('] },
      },
    }),
    /spec\.authzConfig\.inline\.policies\[1\]: is not a Cedar policy/,
  ],
  [
    'entities in the wrong form',
    virtual({
      incomingAuth: {
        type: 'anonymous',
        authzConfig: {
          type: 'inline',
          inline: { policies: ['permit(principal, action, resource);'], entitiesJson: '{}' },
        },
      },
    }),
    /entitiesJson: must be a JSON list/,
  ],
  [
    'a shared policy with a syntax error',
    authzConfig({ policies: ['forbid'] }),
    /spec\.config\.policies\[0\]: is not a Cedar policy/,
  ],
  [
    'an unknown policy engine',
    resource('MCPAuthzConfig', 'a', { type: 'rego', config: {} }),
    /use one of cedarv1, httpv1, authzenv1/,
  ],
  ['a misspelt policy field', authzConfig({ groupClaimName: 'x' }), /groupClaimName: is not a known field/],
  [
    'an issuer with a query',
    oidcConfig({ issuer: 'https://login.example.com?x=1' }),
    /neither query nor fragment/,
  ],
  [
    'a collector with an invalid address',
    telemetryConfig({ endpoint: 'not a host' }),
    /must be host:port or a URL/,
  ],
  [
    'two tools with the same name',
    toolConfig({ toolsOverride: { a: { name: 'c' }, b: { name: 'c' } } }),
    /would both be called c/,
  ],
  [
    'a prefix with another placeholder',
    door({ aggregation: { conflictResolutionConfig: { prefixFormat: '{name}_' } } }),
    /or a fixed text/,
  ],
  [
    'two entries for one workload',
    door({ aggregation: { tools: [{ workload: 'a' }, { workload: 'a' }] } }),
    /repeats the workload/,
  ],
  ['an optimizer without embeddings', door({ optimizer: {} }), /spec\.embeddingServerRef: is required/],
  [
    'compat with embeddingServerRef',
    virtual({
      embeddingServerRef: { name: 'e' },
      config: {
        optimizer: { embeddingProvider: 'compat', embeddingModel: 'm', embeddingService: 'https://e' },
      },
    }),
    /compat/,
  ],
  ['a restricted header', virtual({ passthroughHeaders: ['X-Forwarded-For'] }), /restricted header/],
  ['an authorization server without oidc', virtual({ authServerConfig: embedded() }), /must be oidc/],
  [
    'a deprecated provider that does not exist',
    virtual({ incomingAuth: servedBy, authServerConfig: embedded() }),
    /one of authServerConfig\.upstreamProviders/,
  ],
  [
    'a deprecated provider without server',
    virtual({ incomingAuth: servedBy }),
    /requires spec\.authServerConfig/,
  ],
  [
    'a primary provider that does not exist',
    virtual({ incomingAuth: oidc, authServerConfig: embedded({ primaryUpstreamProvider: 'other' }) }),
    /primaryUpstreamProvider/,
  ],
  [
    'a workflow in a circle',
    workflow({ steps: [{ id: 'a', tool: 'x.a', dependsOn: ['a'] }] }),
    /the steps a -> a have a circular dependency/,
  ],
  [
    'the same workflow twice',
    door({
      compositeTools: [
        { name: 'w', description: 'd', steps: [{ id: 'a', tool: 'x.a' }] },
        { name: 'w', description: 'd', steps: [{ id: 'a', tool: 'x.a' }] },
      ],
    }),
    /exists already|unique/,
  ],
]

t.test('admission: a spec that can only fail later is rejected, naming the field', async (t) => {
  proves(
    '2.error.cloudSts.no-role',
    '3.error.passthroughHeaders',
    '3.config.compositeTools',
    '3.config.compositeTools.parameters',
  )
  for (const [what, manifest, where] of refused) {
    const { violations } = validateResource(manifest)
    t.ok(violations.length > 0, `${what}: rejected`)
    t.match(violations.map(({ path, message }) => `${path}: ${message}`).join('\n'), where, what)
  }
})

t.test('admission: a valid spec is accepted, even if the objects it names do not exist', async (t) => {
  const right = [
    ...Object.values(auth),
    server('s'),
    remote('p'),
    entry('e'),
    virtual(),
    oidcConfig(),
    authzConfig(),
    telemetryConfig(),
    toolConfig(),
    workflow({}),
    virtual({ groupRef: { name: 'nowhere' }, incomingAuth: oidc, authServerConfig: embedded() }),
    virtual({ incomingAuth: oidc, authServerConfig: embedded({ issuer: 'http://login.example.com' }) }),
  ]
  for (const manifest of right)
    t.strictSame(validateResource(manifest).violations, [], `${manifest.kind} ${manifest.metadata.name}`)
})

t.test('admission: all errors are reported at once', async (t) => {
  const { violations } = validateResource(
    virtual({
      incomingAuth: servedBy,
      config: { optimizer: {}, compositeTools: [{ name: 'w', steps: [{ id: 'a' }] }] },
    }),
  )
  t.strictSame(
    violations.map(({ path }) => path),
    [
      'spec.config.compositeTools[0].steps[0].tool',
      'spec.embeddingServerRef',
      'spec.incomingAuth.authzConfig.inline.primaryUpstreamProvider',
    ],
  )
})

t.test('admission: valid but unusual settings cause warnings', async (t) => {
  proves('3.version.telemetry', '3.version.primaryUpstreamProvider')
  const warned: [object, RegExp][] = [
    [auth.none, /no credentials are sent/],
    [external('embeddedAuthServer', embedded({ issuer: 'http://login.example.com' })), /insecureAllowHTTP/],
    [external('embeddedAuthServer', embedded({ signingKeySecretRefs: undefined })), /development only/],
    [virtual({ config: { telemetry: {} } }), /telemetryConfigRef/],
    [virtual({ config: { backends: [{ name: 'a', url: 'https://a', transport: 'sse' }] } }), /source inline/],
    [
      virtual({
        incomingAuth: {
          ...oidc,
          authzConfig: {
            type: 'inline',
            inline: { policies: ['permit(principal, action, resource);'], primaryUpstreamProvider: 'corp' },
          },
        },
        authServerConfig: embedded(),
      }),
      /deprecated/,
    ],
    [
      virtual({
        outgoingAuth: { source: 'inline', backends: { aplha: { type: 'discovered' } } },
        config: { backends: [{ name: 'alpha', url: 'https://a', transport: 'sse' }] },
      }),
      /did you mean alpha\? spec\.outgoingAuth\.backends\.aplha/,
    ],
    [server('s', { transport: 'stdio' }), /all sessions share one process/],
  ]
  for (const [manifest, text] of warned) {
    const { violations, warnings } = validateResource(manifest)
    t.strictSame(violations, [])
    t.match(warnings.join('\n'), text)
    for (const warning of warnings) t.ok(warning.length <= 120, warning)
  }
})

t.test('admission: a step whose backend name resembles a static backend causes a warning', async (t) => {
  const withStep = (tool: string, aggregation?: object) =>
    validateResource(
      virtual({
        outgoingAuth: { source: 'inline' },
        config: {
          backends: [{ name: 'files', url: 'https://files.example', transport: 'streamable-http' }],
          compositeTools: [{ name: 'w', description: 'd', steps: [{ id: 'a', tool }] }],
          ...(aggregation && { aggregation }),
        },
      }),
    )
  const warning =
    'no static backend has this name; did you mean files? spec.config.compositeTools[0].steps[0].tool'
  for (const tool of ['flies.read', 'flies_read']) {
    t.same(withStep(tool), { violations: [], warnings: [warning] }, tool)
  }
  for (const tool of ['files.read', 'files_read', 'elsewhere.read']) {
    t.same(withStep(tool), { violations: [], warnings: [] }, `${tool}: of a static backend, or of a member`)
  }
  const priority = { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['files'] } }
  t.same(withStep('flies_read', priority).warnings, [], 'a tool can have any name')
})

t.test('admission: obo is checked during reconciliation instead', async (t) => {
  const incomplete = external('obo', { scopes: ['a'] })
  t.strictSame(validateResource(incomplete).violations, [])
  t.strictSame(validateResource(incomplete, { settings: { enableObo: true } }).violations, [])
})
