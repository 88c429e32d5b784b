/** ToolHive objects whose settings move: into a virtual server, its workflows, or separate objects. */
import t from 'tap'
import { stringify } from 'yaml'
import { isFields } from '../../../schemas/index.ts'
import { convert, object, rowsOf, specs } from './converted.ts'

t.test('objects: settings of a virtual server', async (t) => {
  const migration = convert([
    object('VirtualMCPServer', {
      incomingAuth: { type: 'anonymous' },
      aggregation: { conflictResolution: 'prefix' },
      config: {
        groupRef: 'team',
        optimizer: {
          embeddingProvider: 'openai',
          embeddingService: 'https://llm.example.com/v1',
          embeddingModel: 'm',
        },
        outgoingAuth: {
          source: 'inline',
          backends: {
            a: {
              type: 'aws_sts',
              awsSts: { region: 'eu-west-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/mcp' },
            },
          },
        },
        telemetry: { endpoint: 'collector:4318', prometheusPort: 9464, metricsOnTransportPort: false },
      },
    }),
  ])
  const [{ spec } = { spec: undefined }] = specs(migration)
  t.match(spec, {
    groupRef: { name: 'team' },
    config: {
      aggregation: { conflictResolution: 'prefix' },
      optimizer: { embeddingProvider: 'compat' },
      outgoingAuth: { backends: { a: { type: 'cloud_sts', cloudSts: { region: 'eu-west-1' } } } },
      telemetry: { endpoint: 'collector:4318' },
    },
  })
  t.notMatch(stringify(spec), /prometheusPort|metricsOnTransportPort|awsSts/)
  t.equal(migration.documents[0]?.outcome, 'differs')
})

t.test('objects: workflows with fields that ToolHive accepts and ignores', async (t) => {
  const steps = [
    {
      id: 'a',
      tool: 'echo',
      arguments: { text: 'at {{.timestamp}}: {{.params.x}}' },
      onError: { action: 'abort', maxRetries: 2, retryDelay: '5s' },
    },
    { id: 'b', tool: 'notes.add', onError: { action: 'retry', maxRetries: 3 }, dependsOn: ['a'] },
  ]
  const migration = convert(
    [
      object('VirtualMCPCompositeToolDefinition', {
        name: 'w',
        description: 'd',
        failureMode: 'abort',
        steps,
      }),
    ],
    { echo: 'notes.echo' },
  )
  t.match(specs(migration)[0]?.spec, {
    name: 'w',
    steps: [
      {
        tool: 'notes.echo',
        arguments: { text: 'at <no value>: {{.params.x}}' },
        onError: { action: 'abort' },
      },
      { tool: 'notes.add', onError: { action: 'retry', retryCount: 3 } },
    ],
  })
  t.equal(migration.documents[0]?.outcome, 'differs', 'the missing text is reported')
  const deep = (value: unknown) =>
    specs(
      convert([
        object('VirtualMCPCompositeToolDefinition', {
          name: 'w',
          description: 'd',
          steps: [{ id: 'a', tool: 'notes.echo', arguments: { list: [value] } }],
        }),
      ]),
    )[0]?.spec
  t.match(deep('{{.params.x}}'), { nestedTemplates: true }, 'templates at any depth go on being such')
  t.notMatch(deep('plain'), { nestedTemplates: true })
})

t.test('objects: inline settings become objects', async (t) => {
  const migration = convert([
    object('MCPServer', {
      image: 'example/notes:1',
      transport: 'streamable-http',
      port: 9090,
      targetPort: 8081,
      tools: ['read'],
      oidcConfig: {
        type: 'inline',
        resourceUrl: 'https://mcp.example.com',
        inline: { issuer: 'https://idp.example.com', audience: 'mcp', clientId: 'c', clientSecret: 'hush' },
      },
      telemetry: {
        openTelemetry: {
          enabled: true,
          endpoint: 'collector:4318',
          serviceName: 'notes',
          tracing: { enabled: true },
        },
      },
    }),
  ])
  t.same(
    specs(migration).map(
      ({ kind, metadata }) => `${String(kind)}/${isFields(metadata) ? String(metadata['name']) : ''}`,
    ),
    [
      'MCPOIDCConfig/one-oidc',
      'MCPTelemetryConfig/one-telemetry',
      'MCPToolConfig/one-tools',
      'MCPServer/one',
    ],
  )
  t.match(specs(migration).at(-1)?.spec, {
    proxyPort: 9090,
    mcpPort: 8081,
    oidcConfigRef: { name: 'one-oidc', audience: 'mcp', resourceUrl: 'https://mcp.example.com' },
    telemetryConfigRef: { name: 'one-telemetry', serviceName: 'notes' },
    toolConfigRef: { name: 'one-tools' },
  })
  t.same(
    migration.secrets.map(({ metadata, stringData }) => [metadata, stringData]),
    [[{ name: 'one-oidc' }, { 'client-secret': 'hush' }]],
  )
  t.notMatch(JSON.stringify(migration.documents), /hush/, 'no value in the report')
})

t.test('objects: entities of policies in their short form', async (t) => {
  const entities = '[{"uid":"Tool::weather","attrs":{"owner":"ada"}},{"uid":"Tool::\\"rain\\""}]'
  const migration = convert([
    object('MCPAuthzConfig', {
      type: 'cedarv1',
      config: { policies: ['permit(principal, action, resource);'], entities_json: entities },
    }),
  ])
  t.equal(migration.documents[0]?.outcome, 'converted')
  t.match(specs(migration)[0]?.spec, {
    config: {
      entities_json: JSON.stringify([
        { uid: { type: 'Tool', id: 'weather' }, attrs: { owner: 'ada' }, parents: [] },
        { uid: { type: 'Tool', id: 'rain' }, attrs: {}, parents: [] },
      ]),
    },
  })
  const external = convert([
    object('MCPAuthzConfig', {
      type: 'httpv1',
      config: { http: { url: 'https://pdp.example.com' }, claim_mapping: 'standard' },
    }),
  ])
  t.same(rowsOf(external), ['differs spec.type'])
})
