/** Conversion of toolhive.stacklok.dev objects, field by field; every result passes admission. */
import t from 'tap'
import { stringify } from 'yaml'
import { readYaml } from '../../../runtime/config/index.ts'
import { isFields } from '../../../schemas/index.ts'
import { convert, object, rowsOf, specs } from './converted.ts'

t.test('objects: fields without a rule are copied, and the API group is replaced', async (t) => {
  const spec = { image: 'example/notes:1', transport: 'streamable-http', mcpPort: 9000, args: ['--quiet'] }
  const server = object('MCPServer', spec, { namespace: 'tools', labels: { team: 'a' } })
  const migration = convert([server, { ...server, apiVersion: 'toolhive.stacklok.dev/v1alpha1' }])
  t.same(
    migration.documents.map(({ outcome, subject }) => [outcome, subject]),
    [
      ['converted', 'MCPServer/one'],
      ['converted', 'MCPServer/one'],
    ],
  )
  const [first, second] = [...migration.files.values()].flat()
  t.equal(first?.['apiVersion'], 'gatehouse.dev/v1beta1')
  t.same(first, second, 'both versions have the same schema')
  t.same(first?.['spec'], spec)
  t.same(first?.['metadata'], { name: 'one', namespace: 'tools', labels: { team: 'a' } })
})

t.test('objects: fields written by a cluster are removed', async (t) => {
  const migration = convert([
    {
      ...object(
        'MCPGroup',
        { description: 'd' },
        {
          uid: 'u',
          resourceVersion: '7',
          generation: 2,
          creationTimestamp: '2026-01-01T00:00:00Z',
          managedFields: [],
          finalizers: ['toolhive.stacklok.dev/mcpgroup-finalizer'],
          annotations: {
            'kubectl.kubernetes.io/last-applied-configuration': '{}',
            'mcpserver.toolhive.stacklok.dev/restarted-at': '2026-01-01',
            'mcpserver.toolhive.stacklok.dev/restart-strategy': 'rolling',
            note: 'stays',
          },
        },
      ),
      status: { phase: 'Ready' },
    },
  ])
  const [made] = [...migration.files.values()].flat()
  t.same(made, {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPGroup',
    metadata: {
      name: 'one',
      annotations: { 'mcpserver.gatehouse.dev/restarted-at': '2026-01-01', note: 'stays' },
    },
    spec: { description: 'd' },
  })
  t.equal(migration.documents[0]?.outcome, 'differs', 'the strategy is omitted and reported')
})

t.test('objects: renamed fields and values', async (t) => {
  const exchange = convert([
    object('MCPExternalAuthConfig', {
      type: 'tokenExchange',
      tokenExchange: {
        token_url: 'https://idp.example.com/token',
        client_id: 'c',
        client_secret_ref: { name: 's', key: 'k' },
        audience: 'a',
        scope: 'read write',
      },
    }),
  ])
  t.same(specs(exchange)[0]?.spec, {
    type: 'tokenExchange',
    tokenExchange: {
      tokenUrl: 'https://idp.example.com/token',
      clientId: 'c',
      clientSecretRef: { name: 's', key: 'k' },
      audience: 'a',
      scopes: ['read', 'write'],
    },
  })
  const sts = { region: 'eu-west-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/mcp' }
  const cloud = convert([object('MCPExternalAuthConfig', { type: 'awsSts', awsSts: sts })])
  t.match(specs(cloud)[0]?.spec, { type: 'cloudSts', cloudSts: sts })
  const embedding = convert([
    object('EmbeddingServer', { resourceOverrides: { deployment: { labels: { a: 'b' } } } }),
  ])
  t.same(specs(embedding)[0]?.spec, { resourceOverrides: { statefulSet: { labels: { a: 'b' } } } })
  const proxy = convert([
    object('MCPRemoteProxy', {
      remoteURL: 'https://mcp.example.com',
      podTemplateSpec: { spec: { containers: [{ name: 'toolhive', resources: {} }] } },
      resourceOverrides: {
        proxyDeployment: { env: [{ name: 'TOOLHIVE_DEBUG', value: 'true' }] },
      },
    }),
  ])
  t.same(specs(proxy)[0]?.spec, {
    remoteUrl: 'https://mcp.example.com',
    podTemplateSpec: { spec: { containers: [{ name: 'gatehouse', resources: {} }] } },
    resourceOverrides: { proxyDeployment: { env: [{ name: 'GATEHOUSE_DEBUG', value: 'true' }] } },
  })
  for (const migration of [exchange, cloud, embedding, proxy])
    t.equal(migration.documents[0]?.outcome, 'converted')
})

t.test('objects: an object whose protection has no equivalent is not written', async (t) => {
  const server = { image: 'example/notes:1', transport: 'sse' }
  const cases: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    spec: object('MCPWebhookConfig', { validating: [] }),
    'spec.validating[0].url': object('MCPWebhookConfig', {
      validating: [{ name: 'w', url: 'https://hook.example/?tenant=a' }],
    }),
    'spec.oidcConfig': object('MCPServer', {
      ...server,
      oidcConfig: { type: 'configMap', configMap: { name: 'c' } },
    }),
    'spec.config.outgoingAuth.source': object('VirtualMCPServer', {
      groupRef: { name: 'g' },
      incomingAuth: { type: 'anonymous' },
      config: { outgoingAuth: { source: 'elsewhere' } },
    }),
    'spec.modelCache.accessMode': object('EmbeddingServer', { modelCache: { accessMode: 'ReadOnlyMany' } }),
  }
  for (const [field, doc] of Object.entries(cases)) {
    const migration = convert([doc])
    t.equal(migration.documents[0]?.outcome, 'not converted', field)
    t.ok(rowsOf(migration).includes(`refused ${field}`), `${field}: ${rowsOf(migration).join(', ')}`)
    t.equal(migration.files.size, 0, 'nothing is written')
  }
})

t.test('objects: lost settings are reported, except defaults', async (t) => {
  const provider = {
    name: 'idp',
    type: 'oauth2',
    oauth2Config: {
      authorizationEndpoint: 'https://idp.example.com/authorize',
      tokenEndpoint: 'https://idp.example.com/token',
      clientId: 'c',
      allowPrivateIPs: true,
      insecureAllowHTTP: false,
    },
  }
  const migration = convert([
    object('MCPExternalAuthConfig', {
      type: 'embeddedAuthServer',
      embeddedAuthServer: {
        issuer: 'https://auth.example.com',
        upstreamProviders: [provider],
        delegateClients: [{ clientId: 'd' }],
        allowConfidentialClientRegistration: true,
      },
    }),
    object('MCPGroup', { description: 'd', colour: 'red' }, { name: 'two' }),
  ])
  t.same(rowsOf(migration), [
    'lost spec.embeddedAuthServer.delegateClients',
    'lost spec.embeddedAuthServer.upstreamProviders[0].oauth2Config.allowPrivateIPs',
    'lost spec.colour',
  ])
  t.same(
    migration.documents.map(({ outcome }) => outcome),
    ['partly', 'partly'],
  )
  t.match(specs(migration)[0]?.spec, {
    embeddedAuthServer: { allowConfidentialClientRegistration: true },
  })
  t.same(specs(migration).at(-1)?.spec, { description: 'd' })
})

t.test(
  'objects: grants without a user that have no equivalent are reported as lost, with the reason',
  async (t) => {
    const embeddedAuthServer = {
      issuer: 'https://auth.example.com',
      upstreamProviders: [
        {
          name: 'idp',
          type: 'oidc',
          oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' },
          caBundleRef: { configMapRef: { name: 'idp-ca', key: 'ca.pem' } },
        },
      ],
      delegateClients: [{ clientId: 'd', clientSecretRef: { name: 'd', key: 'secret' }, scopes: ['read'] }],
      trustedIssuers: [{ issuerUrl: 'https://kubernetes.default.svc' }],
      spiffeTrustDomains: [{ name: 'prod', trustDomain: 'example.org' }],
      inboundGrants: {
        spiffeClientAuth: [{ trustDomainRef: 'prod', clientId: 'reports' }],
        tokenExchange: { issuerPolicies: [{ issuerRef: 'a' }] },
        jwtBearer: { issuerPolicies: [{ issuerRef: 'a' }] },
      },
      allowPrivateKeyJWTRegistration: true,
    }
    const migration = convert([
      object('MCPExternalAuthConfig', { type: 'embeddedAuthServer', embeddedAuthServer }),
    ])
    const [document] = migration.documents
    t.equal(document?.outcome, 'partly')
    const textOf = (field: string) =>
      document?.rows.find((row) => row.field === `spec.embeddedAuthServer.${field}`)?.text
    t.match(
      textOf('delegateClients'),
      /exchanges users’ tokens.*subjectClients.*a program that acts for itself/,
    )
    t.match(
      textOf('trustedIssuers'),
      /not accepted as subject tokens.*inboundGrants.jwtBearer, with the scopes/,
    )
    t.match(textOf('spiffeTrustDomains[0]'), /only bundles in a ConfigMap/)
    t.match(textOf('inboundGrants.spiffeClientAuth[0]'), /the client’s trust domain is not converted/)
    t.match(textOf('inboundGrants.tokenExchange'), /not exchanged/)
    t.match(textOf('inboundGrants.jwtBearer'), /bindings without scopes.*with the scopes of each subject/)
    t.match(textOf('allowPrivateKeyJWTRegistration'), /cannot register public keys/)
    t.equal(document?.rows.length, 7, 'an empty object has no row')
    const { issuer, upstreamProviders } = embeddedAuthServer
    t.strictSame(specs(migration)[0]?.spec, {
      type: 'embeddedAuthServer',
      embeddedAuthServer: { issuer, upstreamProviders },
    })
  },
)

t.test('objects: a virtual server keeps its upstream filter', async (t) => {
  const authServerUpstreamFilter = {
    claim: 'teams',
    rules: [{ groups: ['sales'], upstreamProviders: ['crm'] }],
    defaultUpstreams: ['corp'],
  }
  const provider = (name: string) => ({
    name,
    type: 'oidc',
    oidcConfig: { issuerUrl: `https://${name}.example.com`, clientId: 'c' },
    caBundleRef: { configMapRef: { name: 'ca' } },
  })
  const migration = convert([
    object('VirtualMCPServer', {
      groupRef: { name: 'g' },
      incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'login', audience: 'a' } },
      authServerConfig: {
        issuer: 'https://a.example.com',
        upstreamProviders: [provider('corp'), provider('crm')],
      },
      authServerUpstreamFilter,
    }),
  ])
  t.same(migration.documents[0]?.rows, [])
  t.match(specs(migration)[0]?.spec, {
    authServerUpstreamFilter,
    authServerConfig: { upstreamProviders: [provider('corp'), provider('crm')] },
  })
})

t.test(
  'objects: a proxy attaches to a stdio server without a command, and a package image gets a command',
  async (t) => {
    const bare = convert([object('MCPServer', { image: 'example/notes:1' })])
    t.match(bare.documents[0]?.rows, [{ effect: 'differs', field: 'spec.image', text: /own entrypoint/ }])
    const packages: Readonly<
      Record<string, { readonly command: readonly string[]; readonly local: string }>
    > = {
      'npx://@example/notes@1.2.3': {
        command: ['npx', '-y', '@example/notes@1.2.3'],
        local: 'npx -y @example/notes@1.2.3',
      },
      'uvx://notes@1.2.3': {
        command: ['env', 'HOME=/tmp', 'uvx', 'notes@1.2.3'],
        local: 'uvx notes@1.2.3',
      },
      'go://example.com/notes': {
        command: [
          'env',
          'HOME=/tmp',
          'GOCACHE=/tmp/go-build',
          'GOPATH=/tmp/go',
          'go',
          'run',
          'example.com/notes@latest',
        ],
        local: 'go run example.com/notes@latest',
      },
    }
    for (const [image, { command, local }] of Object.entries(packages)) {
      const migration = convert([object('MCPServer', { image, args: ['--quiet'] })])
      const [made] = specs(migration)
      t.match(made?.spec, { podTemplateSpec: { spec: { containers: [{ name: 'mcp', command }] } } }, image)
      t.match(made?.metadata, { annotations: { 'gatehouse.dev/local-command': `${local} --quiet` } })
      t.notMatch(JSON.stringify(migration.documents), /needs a command/)
    }
    const built = convert([object('MCPServer', { image: 'toolhivelocal/npx-notes:1', transport: 'sse' })])
    t.same(rowsOf(built), ['lost spec.image'])
  },
)

t.test(
  'objects: other API groups are copied, the registry is skipped, and a name in use gets a number',
  async (t) => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { a: 'b' } }
    const migration = convert([
      secret,
      object('MCPRegistry', {}),
      object('MCPToolConfig', { toolsFilter: ['x'] }, { name: 'one-tools' }),
      object('MCPServer', { image: 'i', transport: 'sse', tools: ['read'] }),
    ])
    t.same(
      migration.documents.map(({ outcome }) => outcome),
      ['unchanged', 'skipped', 'converted', 'converted'],
    )
    t.same([...migration.files.values()].flat()[0], secret)
    t.match(specs(migration).at(-1)?.spec, { toolConfigRef: { name: 'one-tools-2' } })
  },
)

t.test('objects: names in another case, and fields that are null', async (t) => {
  const migration = convert([
    object('MCPOIDCConfig', {
      type: 'inline',
      inline: {
        issuer: 'https://idp.example.com',
        clientID: 'c',
        clientSecretRef: { name: 's', key: 'k' },
        jwksUrl: null,
      },
    }),
    object('VirtualMCPCompositeToolDefinition', {
      name: 'w',
      description: 'd',
      steps: [{ id: 'a', tool: 'notes.echo', arguments: { none: null }, condition: null }],
    }),
  ])
  t.same(
    specs(migration).map(({ spec }) => spec),
    [
      {
        type: 'inline',
        inline: {
          issuer: 'https://idp.example.com',
          clientId: 'c',
          clientSecretRef: { name: 's', key: 'k' },
        },
      },
      { name: 'w', description: 'd', steps: [{ id: 'a', tool: 'notes.echo', arguments: { none: null } }] },
    ],
  )
  t.same(rowsOf(migration), ['renamed spec.inline.clientID'])
})

t.test('objects: the same documents result in the same bytes', async (t) => {
  const { documents: docs, violations } = readYaml(
    'apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: {name: a}\nspec: {image: i, tools: [b, a]}\n',
  )
  t.same(violations, [])
  const given = docs.flatMap(({ value }) => (isFields(value) ? [value] : []))
  t.equal(stringify([...convert(given).files]), stringify([...convert(given).files]))
})
