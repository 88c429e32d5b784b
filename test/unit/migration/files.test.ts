/** Run configurations, virtual server files and policy files, converted to Gatehouse's form. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { validateRuntime } from '../../../schemas/index.ts'
import { type Migration, migrate } from '../../../runtime/tools/migration/convert.ts'

function convert(doc: Readonly<Record<string, unknown>>, file = 'given.json'): Migration {
  return migrate([{ doc, file, lineOf: () => 1 }], {
    violationsOf: (manifest) => validateResource(manifest).violations,
    tools: new Map(),
  })
}

function made(migration: Migration, kind: string) {
  return [...[...migration.files.values()].flat(), ...migration.secrets].find((doc) => doc['kind'] === kind)
}

const run = { schema_version: 'v0.1.0', name: 'My Notes', transport: 'stdio', permission_profile: null }

t.test('run configuration: a server of packages with variables, secrets and a group', async (t) => {
  const migration = convert({
    ...run,
    image: 'uvx://notes@1.2.3',
    base_name: 'My Notes',
    container_name: 'my-notes',
    cmd_args: ['--quiet'],
    host: '127.0.0.1',
    port: 24567,
    proxy_mode: 'streamable-http',
    env_vars: { LOG_LEVEL: 'info', NOTES_TOKEN: 'hush-hush-hush' },
    secrets: ['github,target=GITHUB_TOKEN'],
    volumes: ['/srv/notes:/data:ro'],
    group: 'default',
    tools_filter: ['read'],
    audit_config: { component: 'x' },
    container_labels: { a: 'b' },
  })
  t.equal(migration.documents[0]?.outcome, 'differs')
  t.match(made(migration, 'MCPServer'), {
    metadata: { name: 'my-notes' },
    spec: {
      groupRef: { name: 'default' },
      transport: 'stdio',
      proxyMode: 'streamable-http',
      proxyPort: 24567,
      args: ['--quiet'],
      audit: { enabled: true },
      env: [{ name: 'LOG_LEVEL', value: 'info' }],
      secrets: [
        { name: 'my-notes-secrets', key: 'NOTES_TOKEN' },
        { name: 'my-notes-secrets', key: 'github', targetEnvName: 'GITHUB_TOKEN' },
      ],
      volumes: [{ hostPath: '/srv/notes', mountPath: '/data', readOnly: true }],
      toolConfigRef: { name: 'my-notes-tools' },
      podTemplateSpec: { spec: { containers: [{ name: 'mcp' }] } },
    },
  })
  t.ok(made(migration, 'MCPGroup'))
  t.match(made(migration, 'Secret'), { stringData: { NOTES_TOKEN: 'hush-hush-hush', github: '' } })
  t.notMatch(JSON.stringify(migration.documents), /hush/, 'no value in the report')
})

t.test('run configuration: a remote server, its token and headers', async (t) => {
  const migration = convert({
    ...run,
    image: '',
    remote_url: 'https://mcp.example.com/mcp',
    transport: 'streamable-http',
    remote_auth_config: { bearer_token: 'hush-hush-hush' },
    header_forward: { add_plaintext_headers: { 'X-Team': 'a' }, add_headers_from_secret: { 'X-Key': 'key' } },
    oidc_config: {
      Issuer: 'https://idp.example.com',
      Audience: 'mcp',
      JWKSURL: 'https://idp.example.com/jwks',
    },
  })
  t.match(made(migration, 'MCPRemoteProxy'), {
    spec: {
      remoteUrl: 'https://mcp.example.com/mcp',
      externalAuthConfigRef: { name: 'my-notes-token' },
      oidcConfigRef: { name: 'my-notes-oidc', audience: 'mcp' },
      headerForward: {
        addPlaintextHeaders: { 'X-Team': 'a' },
        addHeadersFromSecret: [
          { headerName: 'X-Key', valueSecretRef: { name: 'my-notes-headers', key: 'key' } },
        ],
      },
    },
  })
  t.match(made(migration, 'MCPOIDCConfig'), {
    spec: {
      type: 'inline',
      inline: { issuer: 'https://idp.example.com', jwksUrl: 'https://idp.example.com/jwks' },
    },
  })
  t.notMatch(JSON.stringify(migration.documents), /hush/)
})

t.test(
  'run configuration: a protection that cannot be converted rejects the whole configuration',
  async (t) => {
    const server = { ...run, image: 'example/notes:1', transport: 'sse' }
    const cases: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
      authz_config_path: { authz_config_path: '/etc/policies.json' },
      authz_config: { authz_config: { version: '1.0', type: 'httpv1', pdp: {} } },
      'validating_webhooks[0].url': { validating_webhooks: [{ name: 'w' }] },
      token_exchange_config: {
        remote_url: 'https://mcp.example.com',
        remote_auth_config: { bearer_token: 'hush' },
        token_exchange_config: { token_url: 'https://idp.example.com/token', audience: 'a' },
      },
      'middleware_configs[1]': { middleware_configs: [{ type: 'mcp-parser' }, { type: 'authorization' }] },
      'additional_middleware_configs[0]': { additional_middleware_configs: [{ type: 'own' }] },
    }
    for (const [field, fields] of Object.entries(cases)) {
      const migration = convert({ ...server, ...fields })
      t.equal(migration.documents[0]?.outcome, 'not converted', field)
      t.match(
        migration.documents[0]?.rows.filter(({ effect }) => effect === 'refused'),
        [{ field }],
      )
      t.equal(migration.files.size, 0)
    }
    const policies = ['permit(principal, action, resource);']
    const said = convert({
      ...server,
      authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } },
      middleware_configs: [{ type: 'authorization' }],
    })
    t.match(made(said, 'MCPServer'), { spec: { authzConfig: { type: 'inline', inline: { policies } } } })
  },
)

t.test('run configuration: an isolated network stays isolated', async (t) => {
  const server = { ...run, image: 'example/notes:1', transport: 'sse', isolate_network: true }
  const profiles: readonly (readonly [unknown, string, string])[] = [
    [{ network: { outbound: { insecure_allow_all: true } } }, 'network', 'differs'],
    [{ network: { outbound: { allow_host: ['example.com'] } } }, 'none', 'partly'],
    [{}, 'none', 'differs'],
  ]
  for (const [profile, name, outcome] of profiles) {
    const migration = convert({ ...server, permission_profile: profile })
    t.match(made(migration, 'MCPServer'), { spec: { permissionProfile: { type: 'builtin', name } } })
    t.equal(migration.documents[0]?.outcome, outcome)
  }
  const open = convert({ ...server, isolate_network: false, permission_profile: {} })
  t.notMatch(JSON.stringify(made(open, 'MCPServer')), /permissionProfile/, 'nothing was enforced')
})

t.test("virtual server: the file is in Gatehouse's form, except for a few names", async (t) => {
  const migration = convert(
    {
      name: 'team',
      group: 'team',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline', default: { type: 'unauthenticated' } },
      aggregation: { conflictResolution: 'prefix' },
      operational: { failureHandling: { partialFailureMode: 'bestEffort' } },
      telemetry: { endpoint: 'collector:4318', prometheusPort: 9464 },
    },
    'vmcp.yaml',
  )
  t.equal(migration.documents[0]?.subject, 'virtual server')
  const [config] = [...migration.files.values()].flat()
  t.same(validateRuntime('vmcp', config).violations, [])
  t.match(config, {
    groupRef: 'team',
    operational: { failureHandling: { partialFailureMode: 'best_effort' } },
  })
})

t.test(
  'virtual server: a file without an OIDC client id gets the audience, which Gatehouse requires',
  async (t) => {
    const source = {
      name: 'team',
      groupRef: 'team',
      outgoingAuth: { source: 'inline', default: { type: 'unauthenticated' } },
      aggregation: { conflictResolution: 'prefix' },
    }
    const oidc = { issuer: 'https://login.example.com', audience: 'https://mcp.example.com' }
    const convertedOidc = (more: object) => {
      const migration = convert(
        { ...source, incomingAuth: { type: 'oidc', oidc: { ...oidc, ...more } } },
        'vmcp.yaml',
      )
      const [config] = [...migration.files.values()].flat()
      t.same(validateRuntime('vmcp', config).violations, [])
      return { config, rows: JSON.stringify(migration.documents) }
    }
    const filled = convertedOidc({})
    t.match(filled.config, { incomingAuth: { oidc: { clientId: 'https://mcp.example.com' } } })
    t.match(filled.rows, /incomingAuth\.oidc\.clientId/)
    const given = convertedOidc({ clientId: 'own' })
    t.match(given.config, { incomingAuth: { oidc: { clientId: 'own' } } })
    t.notMatch(given.rows, /incomingAuth\.oidc\.clientId/)
  },
)

t.test('policies: a policy file becomes an MCPAuthzConfig, and any other file is skipped', async (t) => {
  const policies = ['permit(principal, action, resource);']
  const migration = convert(
    { version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } },
    'team/My policies.json',
  )
  t.match(made(migration, 'MCPAuthzConfig'), {
    metadata: { name: 'my-policies' },
    spec: { type: 'cedarv1', config: { policies } },
  })
  const other = convert({ servers: {} })
  t.equal(other.documents[0]?.outcome, 'skipped')
  t.equal(other.files.size, 0)
})
