/** References of manifests, checked offline against the given files. */
import t from 'tap'
import { referenceCheck, validateResource } from '../../../hooks/index.ts'
import { checkManifests } from '../../../runtime/toolkit/manifests/check.ts'
import { readManifests } from '../../../runtime/toolkit/manifests/read.ts'
import {
  auth,
  configMap,
  entry,
  group,
  oidcConfig,
  openApi,
  petstore,
  resource,
  secret,
  server,
  virtual,
} from '../../hooks/resources.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

const named = (name: string, doc: object) => ({ ...doc, metadata: { name, namespace: 'default' } })
const check = (...docs: object[]) => {
  const text = JSON.stringify({ kind: 'List', items: docs })
  const checked = checkManifests(
    readManifests(['-'], () => text),
    { validate: validateResource, references: referenceCheck },
  )
  return {
    violations: checked.flatMap(({ violations }) => violations),
    warnings: checked.flatMap(({ warnings }) => warnings),
  }
}
const inGroup = (name: string) => ({ groupRef: { name } })

t.test('references: a missing object is an error if other objects of its kind are given', async (t) => {
  const quickstart = named('quickstart', group)
  t.match(check(quickstart, named('a', server('a', inGroup('quickstat')))).violations, [
    {
      path: 'spec.groupRef.name',
      message: 'MCPGroup "quickstat" is not among the given files; did you mean "quickstart"?',
    },
  ])
  t.same(check(quickstart, named('a', server('a', inGroup('quickstart')))), { violations: [], warnings: [] })
})

t.test('references: a missing object is a warning if no object of its kind is given', async (t) => {
  t.same(check(named('a', server('a', inGroup('quickstat')))), {
    violations: [],
    warnings: [
      'spec.groupRef.name: MCPGroup "quickstat" is not among the given files; it must be on the cluster',
    ],
  })
})

t.test('references: an object in another namespace does not match', async (t) => {
  const elsewhere = { ...group, metadata: { name: 'tools', namespace: 'elsewhere' } }
  t.match(check(elsewhere, named('a', server('a', inGroup('tools')))).warnings, [/MCPGroup "tools"/])
})

t.test('references: every reference field is checked, at any location', async (t) => {
  const refs = {
    ...inGroup('one'),
    embeddingServerRef: { name: 'two' },
    telemetryConfigRef: { name: 'three' },
    incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'four' }, authzConfigRef: { name: 'five' } },
    outgoingAuth: {
      default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'six' } },
      backends: { a: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'seven' } } },
    },
    config: {
      aggregation: { tools: [{ workload: 'a', toolConfigRef: { name: 'eight' } }] },
      compositeToolRefs: [{ name: 'nine' }],
    },
  }
  const door = named('door', virtual(refs))
  const found = referenceCheck([door])(door).warnings.map((line) =>
    line.replace(/^\S+ (\S+) "(\w+)".*$/, '$1 $2'),
  )
  t.same(found.toSorted(), [
    'EmbeddingServer two',
    'MCPAuthzConfig five',
    'MCPExternalAuthConfig seven',
    'MCPExternalAuthConfig six',
    'MCPGroup one',
    'MCPOIDCConfig four',
    'MCPTelemetryConfig three',
    'MCPToolConfig eight',
    'VirtualMCPCompositeToolDefinition nine',
  ])
  t.match(referenceCheck([door, named('fuor', oidcConfig())])(door).violations, [
    { path: 'spec.incomingAuth.oidcConfigRef.name', message: /did you mean "fuor"/ },
  ])
})

t.test(
  'references: backend names of a virtual server are checked against the given members of its group',
  async (t) => {
    const tools = named('tools', group)
    const door = (source: string) =>
      named(
        'door',
        virtual({
          ...inGroup('tools'),
          outgoingAuth: { source, backends: { flies: { type: 'discovered' } } },
          config: {
            aggregation: { tools: [{ workload: 'static' }] },
            backends: [{ name: 'static', url: 'https://a.example', transport: 'sse' }],
          },
        }),
      )
    const files = named('files', server('files', inGroup('tools')))
    t.match(check(tools, files, door('inline')).violations, [
      { path: 'spec.outgoingAuth.backends.flies', message: /did you mean "files"/ },
    ])
    t.match(
      check(tools, files, named('flies', entry('flies', inGroup('tools'))), door('discovered')).violations,
      [{ path: 'spec.config.aggregation.tools[0].workload' }],
      'static backends are used with source inline only',
    )
    t.same(check(tools, door('inline')).violations, [], 'no member is given, so they may be on the cluster')
  },
)

t.test('references: backends of workflow steps, inline and in given definitions', async (t) => {
  const steps = (tool: string) => ({ name: 'w', description: 'd', steps: [{ id: 'a', tool }] })
  const door = named(
    'door',
    virtual({
      ...inGroup('tools'),
      config: { compositeTools: [steps('flies_read')], compositeToolRefs: [{ name: 'report' }] },
    }),
  )
  const report = named('report', {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'VirtualMCPCompositeToolDefinition',
    spec: { ...steps('flies.read'), name: 'report' },
  })
  const members = [named('tools', group), named('files', server('files', inGroup('tools')))]
  const unknown = 'unknown backend "flies"; did you mean "files"?'
  const inline = { path: 'spec.config.compositeTools[0].steps[0].tool', message: unknown }
  t.match(check(...members, report, door).violations, [
    inline,
    {
      path: 'spec.config.compositeToolRefs[0].name',
      message: `VirtualMCPCompositeToolDefinition report: spec.steps[0].tool: ${unknown}`,
    },
  ])
  t.match(check(...members, door), { violations: [inline], warnings: [/"report" is not among/] })
  t.same(check(named('tools', group), report, door).violations, [], 'no member is given')
})

t.test('references: a tool lock that names no given backend causes a warning', async (t) => {
  const lock = (kind: string, name: string) => ({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPToolLock',
    metadata: { name: 'lock', namespace: 'default' },
    spec: { backendRef: { kind, name } },
  })
  const tools = named('tools', group)
  const notes = named('notes', server('notes', inGroup('tools')))
  const inline = named(
    'hub',
    virtual({ groupRef: { name: 'tools' }, config: { backends: [{ name: 'files' }] } }),
  )
  const warningsOf = (kind: string, name: string) =>
    check(tools, notes, inline, lock(kind, name)).warnings.filter((text) => text.includes('backendRef'))
  t.same(warningsOf('MCPServer', 'notes'), [])
  t.same(warningsOf('Backend', 'files'), [])
  t.same(warningsOf('Backend', 'notes'), [
    'spec.backendRef: the lock does not apply to MCPServer "notes"; set kind to MCPServer',
  ])
  t.same(warningsOf('MCPServer', 'note'), [
    'spec.backendRef: MCPServer "note" is not among the given files; without this backend, the lock has no effect',
  ])
  t.same(check(lock('MCPServer', 'notes')).warnings, [], 'the backends may be on the cluster')
})

t.test('references: malformed documents cause no exception', async (t) => {
  for (const doc of [
    null,
    1,
    {},
    { kind: 'VirtualMCPServer' },
    { kind: 'VirtualMCPServer', spec: { groupRef: 1, config: null } },
  ]) {
    t.same(referenceCheck([doc])(doc), { violations: [], warnings: [], unchecked: [] })
  }
})

t.test('validate and render: a dangling reference is an error with file, line and exit code 1', async (t) => {
  const text = [named('quickstart', group), named('a', server('a', inGroup('quickstat')))]
    .map((doc) => JSON.stringify(doc))
    .join('\n---\n')
  for (const command of ['validate', 'render']) {
    const { code, stderr } = await runGatehouse([command, '-f', '-'], text)
    t.equal(code, 1, command)
    t.match(stderr, '-:3: MCPServer/a: spec.groupRef.name: MCPGroup "quickstat" is not among the given files')
  }
  const alone = await runGatehouse(
    ['validate', '-f', '-'],
    JSON.stringify(named('a', server('a', inGroup('x')))),
  )
  t.equal(alone.code, 0, 'a warning does not change the exit code')
  t.match(alone.stderr, 'warning: spec.groupRef.name: MCPGroup "x" is not among the given files')
})

t.test('references: a given OpenAPI document is converted', async (t) => {
  const pets = named('pets', openApi('pets', inGroup('tools')))
  const tools = named('tools', group)
  const map = (text: string) => named('petstore', configMap('petstore', { 'openapi.json': text }))
  const path = 'spec.document.configMapRef'
  t.match(check(tools, pets, map(petstore)), {
    violations: [],
    warnings: [/^spec\.document\.configMapRef: GET \/export is skipped: .* \(invalid_name\)$/],
  })
  const broken = check(tools, pets, map('{"openapi": "3.1.0", "openapi": "3.0.0"}'))
  t.match(broken, { violations: [{ path, message: /rejected \(duplicate-key\)/ }], warnings: [] })
  t.match(check(tools, pets, named('petstore', configMap('petstore', { other: 'x' }))).violations, [
    { path: `${path}.key`, message: /has no key/ },
  ])
  t.same(check(tools, pets), { violations: [], warnings: [] }, 'the document may be on the cluster')
  const operation = (index: number) => ({ get: { operationId: `${index}`.padEnd(200, 'x'), responses: {} } })
  const paths = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`/p${index}`, operation(index)]))
  const many = JSON.stringify({ openapi: '3.1.0', info: {}, paths: { ...paths, '/ok': { get: {} } } })
  const { warnings } = check(tools, pets, map(many))
  t.match([warnings.length, warnings.at(-1)], [21, `${path}: 10 more operations are skipped`])
  const invalid = named('pets', openApi('pets', { ...inGroup('tools'), baseUrl: 7 }))
  t.notMatch(JSON.stringify(check(tools, invalid, map('[]'))), 'rejected', 'the schema reports the object')
})

const unchecked = (...docs: object[]) => referenceCheck(docs)(docs[0]).unchecked

t.test('references: a missing key of a given Secret or ConfigMap is an error', async (t) => {
  const header = named('header', auth.header)
  const tokens = (data: Record<string, string>) => named('tokens', secret('tokens', data))
  t.same(check(header, tokens({ api: 'x' })), { violations: [], warnings: [] })
  t.match(check(header, tokens({ other: 'x' })).violations, [
    { path: 'spec.headerInjection.valueSecretRef.key', message: 'Secret "tokens" has no key "api"' },
  ])
  t.match(check(header, { ...tokens({}), data: {} }).violations, [{}], 'given and empty')
  const filled = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tokens', namespace: 'default' } }
  t.same(check(header, filled).violations, [], 'a controller writes the content')
  const withSecrets = named(
    'a',
    server('a', { secrets: [{ name: 'tokens', key: 'none', targetEnvName: 'A' }] }),
  )
  t.match(check(withSecrets, tokens({ api: 'x' })).violations, [{ path: 'spec.secrets[0].key' }])
})

const bundle = (data?: object) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'bundle', namespace: 'default' },
  ...data,
})

t.test('references: a missing key of a given ConfigMap is an error', async (t) => {
  const remote = (name: string) =>
    named('remote', entry('remote', { caBundleRef: { configMapRef: { name, key: 'corp.crt' } } }))
  const none = { violations: [], warnings: [] }
  const ofGroup = named('tools', group)
  t.same(check(remote('bundle'), ofGroup, bundle({ data: { 'corp.crt': 'x' } })), none)
  t.same(check(remote('bundle'), ofGroup, bundle({ binaryData: { 'corp.crt': 'eA==' } })), none)
  const path = 'spec.caBundleRef.configMapRef.key'
  t.match(check(remote('bundle'), ofGroup, bundle({ data: { 'ca.crt': 'x' } })).violations, [
    { path, message: 'ConfigMap "bundle" has no key "corp.crt"' },
  ])
  const policies = named(
    'door',
    virtual({
      incomingAuth: { authzConfig: { type: 'configMap', configMap: { name: 'bundel', key: 'p' } } },
    }),
  )
  t.match(check(policies, bundle({ data: { p: 'x' } })).warnings, [
    /MCPGroup/,
    'spec.incomingAuth.authzConfig.configMap.name: ConfigMap "bundel" is not among the given files; did you mean "bundle"?',
  ])
  t.match(unchecked(remote('other'), bundle({})), [{ kind: 'ConfigMap', name: 'other' }])
})

t.test(
  'references: a built-in permission profile is not a ConfigMap, and a TLS Secret has no key',
  async (t) => {
    const profile = (type: string) =>
      named('a', server('a', { permissionProfile: { type, name: 'network' } }))
    t.same(unchecked(profile('builtin')), [])
    t.same(unchecked(profile('configmap')), [{ kind: 'ConfigMap', name: 'network' }])
    const served = named('a', server('a', { tls: { secretName: 'served' } }))
    t.same(unchecked(served), [{ kind: 'Secret', name: 'served' }])
    t.match(check(served, named('serve', secret('serve', {}))).warnings, [
      /MCPGroup/,
      'spec.tls.secretName: Secret "served" is not among the given files; did you mean "serve"?',
    ])
  },
)

t.test('references: a missing Secret causes a warning if a given one has a similar name', async (t) => {
  const header = named('header', auth.header)
  t.same(check(header), { violations: [], warnings: [] })
  t.same(unchecked(header), [{ kind: 'Secret', name: 'tokens' }])
  t.same(unchecked(header, named('database', secret('database', {}))), [{ kind: 'Secret', name: 'tokens' }])
  const similar = named('token', secret('token', { api: 'x' }))
  t.same(check(header, similar), {
    violations: [],
    warnings: [
      'spec.headerInjection.valueSecretRef.name: Secret "tokens" is not among the given files; did you mean "token"?',
    ],
  })
  t.same(unchecked(header, similar), [], 'reported once')
  const elsewhere = { ...secret('token', {}), metadata: { name: 'token', namespace: 'elsewhere' } }
  t.same(check(header, elsewhere).warnings, [], 'in another namespace')
})

t.test('validate: Secrets and ConfigMaps that are not given are counted in one line', async (t) => {
  const header = (name: string) => JSON.stringify(named(name, auth.header))
  const text = [header('one'), header('two')].join('\n---\n')
  for (const output of ['text', 'json']) {
    const { code, stderr } = await runGatehouse(['validate', '-f', '-', '-o', output], text)
    t.equal(code, 0, output)
    t.equal(stderr.trim(), 'note: 1 Secret is not in the input; its name was not checked', output)
  }
  const folder = t.testdir({
    'kustomization.yaml': 'secretGenerator: [{name: tokens, envs: [not-here.env]}]\nnamespace: default\n',
    'a.yaml': header('one'),
  })
  const generated = await runGatehouse(['validate', '-f', folder])
  t.equal(generated.code, 0, generated.stderr)
  t.equal(generated.stderr, '', 'a generator creates it')
})

t.test('references: unknown backend names in shared webhooks cause warnings', async (t) => {
  const validating = [{ name: 'v', url: 'https://hook.example', match: { backends: ['a', 'b'] } }]
  const hooks = named('hooks', resource('MCPWebhookConfig', 'hooks', { validating }))
  const webhookConfigRef = { name: 'hooks' }
  const refs = { ...inGroup('tools'), webhookConfigRef }
  const [tools, one, door] = [
    named('tools', group),
    named('a', server('a', refs)),
    named('door', virtual(refs)),
  ]
  const warning =
    'spec.webhookConfigRef.name: MCPWebhookConfig hooks: spec.validating[0].match.backends[1]: unknown backend "b"'
  t.match(check(tools, one, hooks), { violations: [], warnings: [warning] }, 'at its MCPServer')
  const other = named('b', server('b', inGroup('tools')))
  t.match(referenceCheck([tools, one, door, hooks])(door).warnings, [warning], 'at a VirtualMCPServer')
  t.same(referenceCheck([tools, one, other, door, hooks])(door).warnings, [])
})
