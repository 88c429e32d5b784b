/** docs/reference/specification/virtual-server.md#config: spec.config. */
import {
  absent,
  booleanRow,
  type Doc,
  durationRow,
  durations,
  type Json,
  notDuration,
  notInteger,
  notString,
  type Table,
} from './table.ts'
import { virtualServer } from './virtual-server.ts'

const at = 'spec.config'
const config = (extra: Doc): Doc => virtualServer({ config: extra })

const top: Table = {
  name: 'config',
  base: config({}),
  rows: [
    { id: '', at: `${at}.name`, good: [absent, 'x'], bad: notString },
    { id: '', at: `${at}.groupRef`, good: [absent, 'x'], bad: notString },
    { id: '', at: `${at}.metadata`, good: [absent, { a: 'b' }], bad: [{ a: 1 }, []], failure: '*' },
    {
      id: '',
      at: `${at}.compositeToolRefs`,
      good: [absent, [{ name: 'a' }]],
      bad: [[{}], ['a'], [{ name: 'a' }, { name: 'a' }]],
      failure: '*',
    },
    {
      id: '3.config.passthroughHeaders.restricted',
      at: `${at}.passthroughHeaders`,
      good: [['X-A']],
      bad: [['Host'], ['x-forwarded-for'], ['cookie']],
      failure: `${at}.passthroughHeaders[0]`,
    },
    { id: '', at: `${at}.agregation`, bad: [{}] },
    {
      id: '',
      at: `${at}.sessionStorage`,
      good: [{ provider: 'memory' }],
      bad: [{}, { provider: 'redis' }, { provider: 'x' }, { provider: 'memory', passwordRef: {} }],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.sessionStorage`,
      good: [{ provider: 'redis', address: 'r:1', db: 1, keyPrefix: 'p' }],
    },
  ],
}

const aggregation: Table = {
  name: 'config.aggregation',
  base: config({ aggregation: { conflictResolutionConfig: {}, tools: [{ workload: 'github' }] } }),
  rows: [
    {
      id: '3.config.aggregation.conflictResolution',
      at: `${at}.aggregation.conflictResolution`,
      default: 'prefix',
      good: ['manual'],
      bad: ['', 'suffix'],
    },
    {
      id: '',
      at: `${at}.aggregation.conflictResolution`,
      bad: ['priority'],
      failure: `${at}.aggregation.conflictResolutionConfig`,
    },
    {
      id: '',
      at: `${at}.aggregation`,
      bad: [{ conflictResolution: 'manual' }],
      failure: `${at}.aggregation.tools`,
    },
    {
      id: '',
      at: `${at}.aggregation`,
      good: [{ conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['a'] } }],
    },
    {
      id: '3.config.aggregation.conflictResolutionConfig.prefixFormat',
      at: `${at}.aggregation.conflictResolutionConfig.prefixFormat`,
      default: '{workload}_',
      good: ['{workload}', '{workload}.', 'x-{workload}/', 'x_'],
      bad: ['', '{name}_', '{workload} '],
    },
    {
      id: '',
      at: `${at}.aggregation.conflictResolutionConfig.priorityOrder`,
      good: [absent, ['a', 'b']],
      bad: ['a', [1], ['']],
      failure: '*',
    },
    booleanRow('', `${at}.aggregation.excludeAllTools`, false),
    {
      id: '',
      at: `${at}.aggregation.defaultToolVisibility`,
      default: 'allow',
      good: ['deny'],
      bad: ['hide'],
    },
    {
      id: '3.config.aggregation.tools.workload',
      at: `${at}.aggregation.tools[0].workload`,
      required: true,
      bad: ['', 1],
    },
    {
      id: '',
      at: `${at}.aggregation.tools[1]`,
      good: [{ workload: 'other' }],
      bad: [{ workload: 'github' }],
    },
    booleanRow('', `${at}.aggregation.tools[0].excludeAll`, false),
    {
      id: '',
      at: `${at}.aggregation.tools[0].filter`,
      good: [absent, [], ['a']],
      bad: ['a', ['']],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.aggregation.tools[0].overrides`,
      good: [
        absent,
        { create: { name: 'make' } },
        { create: { description: 'd' } },
        { create: { annotations: { readOnlyHint: true, title: null } } },
      ],
      bad: [
        { create: {} },
        { create: { name: '' } },
        { create: { annotations: { readonly: true } } },
        { create: 'make' },
      ],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.aggregation.tools[0].toolConfigRef`,
      good: [absent, { name: 'x' }],
      bad: [{}, { name: '' }],
      failure: '*',
    },
  ],
}

const audit: Table = {
  name: 'config.audit',
  base: config({ audit: {} }),
  rows: [
    booleanRow('', `${at}.audit.enabled`, false),
    { id: '', at: `${at}.audit.component`, good: [absent, 'x'], bad: notString },
    booleanRow('', `${at}.audit.detectApplicationErrors`, true),
    {
      id: '',
      at: `${at}.audit.eventTypes`,
      good: [absent, [], ['mcp_tool_call']],
      bad: [['tool_call'], 'mcp_tool_call', ['mcp_ping', 'mcp_ping']],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.audit.excludeEventTypes`,
      good: [absent, ['sse_connection']],
      bad: [['x']],
      failure: '*',
    },
    booleanRow('', `${at}.audit.includeRequestData`, false),
    booleanRow('', `${at}.audit.includeResponseData`, false),
    { id: '', at: `${at}.audit.logFile`, good: [absent, '', '/tmp/a'], bad: notString },
    {
      id: '3.limit.audit.maxDataSize',
      at: `${at}.audit.maxDataSize`,
      default: 1024,
      good: [0],
      bad: [-1, ...notInteger],
    },
    { id: '', at: `${at}.audit.maxDelegationDepth`, default: 10, good: [0], bad: [-1] },
  ],
}

const backend = { name: 'a', url: 'https://a.example.com/mcp', transport: 'streamable-http' }
const backends: Table = {
  name: 'config.backends',
  base: config({ backends: [backend] }),
  rows: [
    { id: '', at: `${at}.backends[0].name`, required: true, bad: ['', 1] },
    {
      id: '3.config.backends.url',
      at: `${at}.backends[0].url`,
      required: true,
      good: ['http://x'],
      bad: ['ftp://x', 'x', ''],
    },
    { id: '', at: `${at}.backends[0].transport`, required: true, good: ['sse'], bad: ['stdio', ''] },
    {
      id: '3.config.backends.type',
      at: `${at}.backends[0].type`,
      good: [absent, 'entry', ''],
      bad: ['server'],
    },
    { id: '3.config.backends.caBundlePath', at: `${at}.backends[0].caBundlePath`, bad: ['/etc/ca.crt'] },
    {
      id: '',
      at: `${at}.backends[0]`,
      good: [{ ...backend, type: 'entry', caBundlePath: '/etc/ca.crt', metadata: { a: 'b' } }],
    },
    {
      id: '',
      at: `${at}.backends[0]`,
      bad: ['etc/ca.crt', '/etc/../ca.crt', '/etc/..'].map((caBundlePath) => ({
        ...backend,
        type: 'entry',
        caBundlePath,
      })),
      failure: `${at}.backends[0].caBundlePath`,
    },
    { id: '', at: `${at}.backends[1]`, bad: [backend] },
  ],
}

const codeMode: Table = {
  name: 'config.codeMode',
  base: config({ codeMode: {} }),
  rows: [
    booleanRow('', `${at}.codeMode.enabled`, false),
    { id: '', at: `${at}.codeMode.parallelMaxConcurrency`, default: 10, good: [1], bad: [0, ...notInteger] },
    {
      id: '',
      at: `${at}.codeMode.stepLimit`,
      default: 100_000,
      good: [1, 5_000_000_000],
      bad: [0, ...notInteger],
    },
    durationRow('', `${at}.codeMode.toolCallTimeout`, '30s'),
  ],
}

const pinning: Table = {
  name: 'config.pinning',
  base: config({ pinning: {} }),
  rows: [
    {
      id: '',
      at: `${at}.pinning.onChanged`,
      default: 'freeze',
      good: ['observe', 'warn', 'freeze', 'block'],
      bad: ['', 'deny', 'Freeze', true],
    },
    {
      id: '',
      at: `${at}.pinning.onNew`,
      default: 'block',
      good: ['observe', 'warn', 'block'],
      bad: ['freeze', ''],
    },
    { id: '', at: `${at}.pinning.onRemoved`, default: 'warn', good: ['observe', 'warn'], bad: ['block', ''] },
    { id: '', at: `${at}.pinning.noLock`, default: 'allow', good: ['allow', 'block'], bad: ['pin', ''] },
    { id: '', at: `${at}.pinning.unknown`, bad: [1] },
  ],
}

const custom = `${at}.extensions.custom[0]`

const extensions: Table = {
  name: 'config.extensions',
  base: config({
    extensions: {
      apps: {},
      tasks: {},
      skills: {},
      custom: [{ id: 'com.example/x', methods: ['x/run'], routeBy: 'name' }],
    },
  }),
  rows: [
    { id: '', at: `${at}.extensions.unknown`, bad: [1] },
    booleanRow('', `${at}.extensions.apps.enabled`, true),
    booleanRow('', `${at}.extensions.apps.listOriginalNames`, true),
    {
      id: '',
      at: `${at}.extensions.apps.allowedOrigins`,
      good: [absent, [], ['https://a.example'], ['https://*.a.example:8443', 'wss://b.example']],
      bad: [['a.example'], ['https://a.example/'], ['https://a.example; script-src *'], ['*'], ['https:']],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.extensions.apps.allowedPermissions`,
      good: [absent, [], ['camera', 'microphone', 'geolocation', 'clipboardWrite']],
      bad: [['usb'], 'camera', ['camera', 'camera']],
      failure: '*',
    },
    booleanRow('', `${at}.extensions.tasks.enabled`, false),
    { id: '', at: `${at}.extensions.tasks.unknown`, bad: [1] },
    {
      id: '',
      at: `${at}.extensions.tasks.maxTasksPerCaller`,
      default: 20,
      good: [1, 1000],
      bad: [0, 1001, '1'],
    },
    {
      id: '',
      at: `${at}.extensions.tasks.maxTasks`,
      default: 10_000,
      good: [1, 100_000],
      bad: [0, 100_001, '1'],
    },
    {
      id: '',
      at: `${at}.extensions.tasks.maxTtl`,
      default: '24h',
      good: ['1s', '168h'],
      bad: ['999ms', '169h', 'x'],
    },
    {
      id: '',
      at: `${at}.extensions.tasks.pollInterval`,
      default: '1s',
      good: ['100ms', '1h'],
      bad: ['99ms', '61m', 'x'],
    },
    {
      id: '',
      at: `${at}.extensions.tasks.runAsTask`,
      good: [absent, [], ['workflows', 'scripts', 'optionalTools']],
      bad: [['tools'], 'scripts', ['scripts', 'scripts']],
      failure: '*',
    },
    booleanRow('', `${at}.extensions.skills.enabled`, false),
    { id: '', at: `${at}.extensions.skills.unknown`, bad: [1] },
    {
      id: '',
      at: `${at}.extensions.skills.refuse`,
      good: [absent, [], ['dynamic'], ['dynamic', 'allowedTools']],
      bad: [['scripts'], 'dynamic', ['dynamic', 'dynamic']],
      failure: '*',
    },
    {
      id: '',
      at: `${custom}.id`,
      required: true,
      good: ['a/b', 'com.example-x/y.z'],
      bad: ['b', '/b', 'a/', '1a/b', 'io.modelcontextprotocol/ui', 'io.modelcontextprotocol/tasks'],
    },
    {
      id: '',
      at: `${custom}.methods`,
      required: true,
      good: [['a/b', 'a/b/c']],
      bad: [[], ['run'], ['tools/call'], ['tasks/get'], ['notifications/x'], ['ui/initialize']],
      failure: '*',
    },
    {
      id: '',
      at: `${custom}.notifications`,
      good: [absent, [], ['notifications/x', 'notifications/x/ready']],
      bad: [['x/ready'], ['notifications/message'], ['notifications/tools/list_changed']],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.extensions.custom`,
      good: [
        [
          { id: 'a/b', methods: ['a/run', 'a/stop'], routeBy: 'name' },
          { id: 'a/c', methods: ['b/run'], routeBy: 'uri' },
        ],
      ],
      bad: [
        [
          { id: 'a/b', methods: ['a/run', 'a/stop'], routeBy: 'name' },
          { id: 'a/c', methods: ['b/run', 'a/stop'], routeBy: 'uri' },
        ],
      ],
    },
    { id: '', at: `${custom}.routeBy`, required: true, good: ['uri', 'name'], bad: ['method', ''] },
    { id: '', at: `${custom}.routeBy`, bad: ['backend'], failure: `${custom}.backend` },
    { id: '', at: `${custom}.param`, good: [absent, 'target'], bad: ['', 'x'.repeat(65)] },
    { id: '', at: `${custom}.backend`, bad: ['b'] },
    { id: '', at: `${custom}.unknown`, bad: [1] },
  ],
}

const rule = `${at}.guardrails.redact[0]`
const mark = `${at}.guardrails.mark[0]`
const size = `${at}.guardrails.sizes[0]`

const guardrails: Table = {
  name: 'config.guardrails',
  base: config({
    guardrails: {
      redact: [
        {
          name: 'r',
          patterns: ['email'],
          match: { backends: ['b'], tools: ['t'] },
          except: [{ pointers: ['/x'] }],
        },
        { name: 's', expressions: ['x'] },
      ],
      mark: [{ name: 'm', hiddenCharacters: 'mark', except: [{ pointers: ['/x'] }] }],
      sizes: [{ name: 'z', maxResultBytes: 1_000, match: {}, except: [{ tools: ['t'] }] }],
    },
  }),
  rows: [
    {
      id: '',
      at: `${at}.guardrails`,
      good: [{ sizes: [{ name: 'z', maxArgumentBytes: 64 }] }],
      bad: [{}, []],
    },
    { id: '', at: `${at}.guardrails.unknown`, bad: [1] },
    { id: '', at: `${at}.guardrails.mark`, good: [[{ name: 'm', delimiters: true }]], bad: [[], {}] },
    { id: '', at: `${mark}.name`, required: true, good: ['a-1'], bad: ['', 'A', 'x'.repeat(64)] },
    {
      id: '',
      at: `${mark}.hiddenCharacters`,
      good: ['observe', 'mark', 'strip', 'refuse'],
      bad: [absent, 'block', ''],
    },
    { id: '', at: `${mark}.delimiters`, good: [true, false], bad: ['yes', 1] },
    { id: '', at: `${mark}.match`, good: [{ tools: ['t'] }], bad: [[]] },
    { id: '', at: `${mark}.except`, bad: [[]] },
    { id: '', at: `${mark}.except[0]`, good: [{ backends: ['b'] }], bad: [{}] },
    { id: '', at: `${at}.guardrails.sizes`, bad: [[], {}] },
    { id: '', at: `${size}.name`, required: true, good: ['a-1'], bad: ['', 'A', 'x'.repeat(64)] },
    {
      id: '',
      at: `${size}.maxResultBytes`,
      good: [256, 67_108_864],
      bad: [absent, 255, 67_108_865, 1.5, '1Mi'],
    },
    { id: '', at: `${size}.maxArgumentBytes`, good: [64, 67_108_864], bad: [0, 63, 67_108_865, '1Mi'] },
    { id: '', at: `${size}.match`, good: [{ backends: ['b'] }], bad: [[]] },
    { id: '', at: `${size}.except`, bad: [[]] },
    { id: '', at: `${size}.except[0]`, good: [{ backends: ['b'] }], bad: [{}, { pointers: ['/x'] }] },
    { id: '', at: `${at}.guardrails.redact`, bad: [[], {}] },
    {
      id: '',
      at: `${rule}.name`,
      required: true,
      good: ['a-1'],
      bad: ['', 'A', 'a b', '-a', 'x'.repeat(64)],
    },
    {
      id: '',
      at: `${rule}.patterns`,
      good: [['apiKey', 'privateKey', 'jwt', 'email', 'iban', 'paymentCard']],
      bad: [absent, [], 'email'],
    },
    { id: '', at: `${rule}.patterns[0]`, good: ['iban'], bad: ['secret', ''] },
    { id: '', at: `${at}.guardrails.redact[1].expressions`, good: [['EMP-[0-9]{6}', '\\pL+x']], bad: [[]] },
    {
      id: '',
      at: `${at}.guardrails.redact[1].expressions[0]`,
      good: ['x'.repeat(400)],
      bad: ['', 'x'.repeat(513)],
    },
    {
      id: '',
      at: `${rule}.action`,
      default: 'mask',
      good: ['mask', 'refuse', 'observe'],
      bad: ['block', ''],
    },
    {
      id: '',
      at: `${rule}.direction`,
      default: 'results',
      good: ['results', 'arguments', 'both'],
      bad: ['response', ''],
    },
    { id: '', at: `${rule}.match`, good: [{}], bad: [[]] },
    { id: '', at: `${rule}.match.backends`, bad: [[], ''] },
    { id: '', at: `${rule}.match.tools[0]`, good: ['t'], bad: ['', 'x'.repeat(257)] },
    { id: '', at: `${rule}.match.methods`, bad: [['tools/call']] },
    { id: '', at: `${rule}.except`, bad: [[]] },
    { id: '', at: `${rule}.except[0]`, good: [{ pointers: ['/a', '/a/*/b~1c'] }], bad: [{}] },
    { id: '', at: `${rule}.except[0].pointers[0]`, good: ['/a//b'], bad: ['a', '/', '/a~2', ''] },
  ],
}

const authentication: Table = {
  name: 'config.incomingAuth',
  base: config({
    incomingAuth: {
      type: 'oidc',
      oidc: { issuer: 'https://idp.example.com', audience: 'a', clientId: 'c' },
      authz: { type: 'none' },
    },
  }),
  rows: [
    {
      id: '',
      at: `${at}.incomingAuth.type`,
      required: true,
      good: ['local', 'anonymous'],
      bad: ['', 'none'],
    },
    { id: '', at: `${at}.incomingAuth.oidc`, required: true },
    { id: '', at: `${at}.incomingAuth.oidc.issuer`, required: true, good: ['http://x'], bad: ['x', ''] },
    { id: '', at: `${at}.incomingAuth.oidc.audience`, required: true, bad: [''] },
    {
      id: '3.config.incomingAuth.oidc.clientId',
      at: `${at}.incomingAuth.oidc.clientId`,
      required: true,
      good: ['x'.repeat(2048)],
      bad: ['', 'x'.repeat(2049)],
    },
    { id: '', at: `${at}.incomingAuth.oidc.clientSecretEnv`, good: [absent, 'S'], bad: ['a-b', ''] },
    booleanRow('', `${at}.incomingAuth.oidc.insecureAllowHttp`, false),
    booleanRow('', `${at}.incomingAuth.oidc.jwksAllowPrivateIp`, false),
    booleanRow('', `${at}.incomingAuth.oidc.protectedResourceAllowPrivateIp`, false),
    {
      id: '',
      at: `${at}.incomingAuth.oidc.caBundlePath`,
      good: [absent, '/etc/ca.crt'],
      bad: ['ca.crt', '/a/../b'],
    },
    {
      id: '3.config.incomingAuth.authz.type',
      at: `${at}.incomingAuth.authz.type`,
      required: true,
      bad: ['', 'opa'],
    },
    {
      id: '',
      at: `${at}.incomingAuth.authz`,
      bad: [{ type: 'cedar' }, { type: 'cedar', policies: [] }],
      failure: `${at}.incomingAuth.authz.policies`,
    },
    {
      id: '',
      at: `${at}.incomingAuth.authz`,
      good: [{ type: 'cedar', policies: ['permit(principal, action, resource);'] }],
    },
    { id: '', at: `${at}.incomingAuth.authz.entitiesJson`, default: '[]' },
    {
      id: '3.config.incomingAuth.authz.groupEntityType',
      at: `${at}.incomingAuth.authz.groupEntityType`,
      default: 'ServiceGroup',
      bad: ['A::B'],
    },
  ],
}

/** Strategy type -> the field of its settings, and valid settings. */
const strategies: { readonly [type: string]: readonly [string, Doc] } = {
  header_injection: ['headerInjection', { headerName: 'X-Key', headerValueEnv: 'KEY' }],
  token_exchange: ['tokenExchange', { tokenUrl: 'https://idp.example.com/token' }],
  upstream_inject: ['upstreamInject', { providerName: 'corp' }],
  cloud_sts: ['cloudSts', { region: 'eu-west-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/x' }],
  bearer_token: ['bearerToken', { tokenEnv: 'TOKEN' }],
  client_credentials: [
    'clientCredentials',
    { tokenUrl: 'https://idp.example.com/token', clientId: 'gateway', clientSecretEnv: 'SECRET' },
  ],
  obo: ['obo', { tokenUrl: 'https://login.example.com/t/oauth2/v2.0/token' }],
  xaa: [
    'xaa',
    {
      idpTokenUrl: 'https://idp.example.com/token',
      targetTokenUrl: 'https://target.example.com/token',
      targetAudience: 'https://target.example.com',
    },
  ],
}

const strategyAt = `${at}.outgoingAuth.default`
const allStrategies: Json[] = Object.entries(strategies).map(([type, [field, value]]) => ({
  type,
  [field]: value,
}))
const outgoing: Table = {
  name: 'config.outgoingAuth',
  base: config({ outgoingAuth: { source: 'inline', default: { type: 'unauthenticated' }, backends: {} } }),
  rows: [
    {
      id: '3.config.outgoingAuth.source',
      at: `${at}.outgoingAuth.source`,
      required: true,
      good: ['discovered'],
      bad: ['', 'x'],
    },
    {
      id: '3.config.outgoingAuth.strategy.type',
      at: strategyAt,
      good: [...allStrategies, { type: 'unauthenticated' }, absent],
      bad: [
        {},
        { type: '' },
        { type: 'tokenExchange' },
        ...Object.keys(strategies).map((type) => ({ type })),
      ],
      failure: '*',
    },
    {
      id: '',
      at: strategyAt,
      bad: Object.values(strategies).map(([field, value]) => ({ type: 'unauthenticated', [field]: value })),
    },
    { id: '', at: `${at}.outgoingAuth.backends["a.b"]`, good: allStrategies, bad: ['x', {}], failure: '*' },
  ],
}

const strategyTables: readonly Table[] = Object.entries(strategies).map(([type, [field, value]]) => ({
  name: `config.outgoingAuth strategy ${type}`,
  base: config({ outgoingAuth: { source: 'inline', default: { type, [field]: value } } }),
  rows: strategyRows(type, `${strategyAt}.${field}`),
}))

function clientCredentialsRows(field: string): Table['rows'] {
  const key = { method: 'privateKeyJwt', privateKeyPath: '/key' }
  const client = { tokenUrl: 'https://idp.example.com/token', clientId: 'gateway' }
  return [
    { id: '', at: `${field}.clientId`, required: true, bad: [''] },
    { id: '', at: `${field}.tokenUrl`, bad: [absent], failure: field },
    { id: '', at: `${field}.issuer`, bad: ['https://idp.example.com'], failure: field },
    { id: '', at: `${field}.clientSecretEnv`, bad: [absent], failure: field },
    { id: '', at: `${field}.clientSecretEnv`, bad: ['1A'] },
    { id: '', at: `${field}.clientSecretPath`, bad: ['/secret'] },
    { id: '', at: `${field}.clientSecretPath`, bad: ['secret', '/a/../b'] },
    { id: '', at: `${field}.clientAuth`, good: [{ method: 'clientSecretPost' }], bad: [{}], failure: '*' },
    { id: '', at: `${field}.clientAuth`, bad: [key], failure: field },
    {
      id: '',
      at: field,
      good: [
        { ...client, clientSecretPath: '/secret' },
        { ...client, clientAuth: key },
        { ...client, clientAuth: { ...key, signingAlg: 'PS256', assertionAudience: 'x' } },
        { ...client, clientAuth: { method: 'federated', assertionPath: '/token' } },
      ],
      bad: [
        { ...client, clientAuth: { method: 'clientSecretBasic' } },
        { ...client, clientAuth: { method: 'privateKeyJwt' } },
        { ...client, clientAuth: { method: 'federated' } },
        { ...client, clientAuth: { ...key, assertionPath: '/token' } },
        { ...client, clientAuth: { method: 'federated', assertionPath: '/token', signingAlg: 'ES256' } },
        { ...client, clientAuth: { ...key, signingAlg: 'HS256' } },
      ],
      failure: '*',
    },
  ]
}

function strategyRows(type: string, field: string): Table['rows'] {
  switch (type) {
    case 'header_injection':
      return [
        { id: '', at: `${field}.headerName`, required: true, bad: ['', 'a b'] },
        {
          id: '3.config.outgoingAuth.headerInjection.headerValue',
          at: `${field}.headerValue`,
          bad: ['v'],
          failure: field,
        },
        {
          id: '3.config.outgoingAuth.headerInjection.headerValueEnv',
          at: `${field}.headerValueEnv`,
          bad: [absent],
          failure: field,
        },
        { id: '', at: `${field}.headerValueEnv`, bad: ['1A', 'A B'] },
      ]
    case 'token_exchange':
      return [
        { id: '', at: `${field}.tokenUrl`, required: true, bad: ['x'] },
        { id: '', at: `${field}.clientSecret`, good: [absent, 's'] },
        {
          id: '',
          at: field,
          bad: [{ tokenUrl: 'https://x', clientSecret: 's', clientSecretEnv: 'S' }],
          failure: `${field}.clientSecretEnv`,
        },
        {
          id: '',
          at: `${field}.subjectTokenType`,
          default: 'urn:ietf:params:oauth:token-type:access_token',
          good: ['id_token'],
          bad: ['x'],
        },
      ]
    case 'client_credentials':
      return clientCredentialsRows(field)
    case 'bearer_token':
      return [
        { id: '', at: `${field}.token`, bad: ['t'], failure: field },
        { id: '', at: `${field}.tokenEnv`, bad: [absent], failure: field },
        { id: '', at: `${field}.tokenEnv`, bad: ['1A', 'A B'] },
        { id: '', at: field, good: [{ token: 't' }], bad: [{ token: 'a b' }], failure: `${field}.token` },
      ]
    case 'upstream_inject':
      return [{ id: '', at: `${field}.providerName`, required: true, bad: [''] }]
    case 'cloud_sts':
      return [
        { id: '', at: `${field}.region`, required: true, bad: ['x'] },
        { id: '', at: `${field}.sessionDuration`, default: 3600, bad: [1] },
        { id: '', at: `${field}.fallbackRoleArn`, bad: [absent], failure: field },
      ]
    case 'obo':
      return [
        { id: '', at: `${field}.tokenUrl`, required: true, bad: ['http://x'] },
        { id: '', at: `${field}.cacheSkewSeconds`, good: [absent, 0], bad: [-1, '1'] },
      ]
    default:
      return [
        { id: '', at: `${field}.targetAudience`, required: true, bad: [''] },
        {
          id: '',
          at: `${field}.targetTokenUrl`,
          required: true,
          good: ['http://localhost:8080/t'],
          bad: ['http://x/t'],
        },
        {
          id: '',
          at: `${field}.idpTokenUrl`,
          required: true,
          good: ['http://127.0.0.1/t'],
          bad: ['http://x/t'],
        },
        { id: '', at: `${field}.idpClientSecretEnv`, bad: ['S'], failure: field },
        { id: '', at: `${field}.targetClientSecretEnv`, bad: ['S'], failure: field },
      ]
  }
}

const failure = `${at}.operational.failureHandling`
const operational: Table = {
  name: 'config.operational',
  base: config({ operational: {} }),
  rows: [
    { id: '', at: `${at}.operational.logLevel`, good: [absent, 'debug'], bad: ['info', ''] },
    durationRow('3.limit.timeouts.default', `${at}.operational.timeouts.default`, '30s'),
    {
      id: '3.config.operational.timeouts.perWorkload',
      at: `${at}.operational.timeouts.perWorkload`,
      good: [absent, { a: '5s' }],
      bad: [{ a: '5' }, { a: 5 }],
      failure: '*',
    },
    { ...durationRow('3.limit.health', `${failure}.healthCheckInterval`, '30s'), good: durations },
    { id: '', at: `${failure}.healthCheckInterval`, bad: ['0s'] },
    { ...durationRow('3.limit.health', `${failure}.healthCheckTimeout`, '10s'), good: ['0s', '29s'] },
    { id: '', at: `${failure}.healthCheckTimeout`, bad: ['30s', '1m'] },
    {
      id: '3.limit.health',
      at: `${failure}.unhealthyThreshold`,
      default: 3,
      good: [1],
      bad: [0, ...notInteger],
    },
    {
      id: '',
      at: `${failure}.partialFailureMode`,
      default: 'fail',
      good: ['best_effort'],
      bad: ['', 'bestEffort'],
    },
    durationRow('3.limit.health', `${failure}.statusReportingInterval`, '30s'),
    booleanRow('', `${failure}.circuitBreaker.enabled`, false),
    {
      id: '3.limit.circuitBreaker',
      at: `${failure}.circuitBreaker.failureThreshold`,
      default: 5,
      good: [1],
      bad: [0, ...notInteger],
    },
    {
      id: '3.limit.circuitBreaker',
      at: `${failure}.circuitBreaker.timeout`,
      default: '60s',
      good: ['1s', '1m'],
      bad: [...notDuration, '999ms', '0s'],
    },
  ],
}

const optimizer: Table = {
  name: 'config.optimizer',
  base: config({ optimizer: {} }),
  rows: [
    { id: '', at: `${at}.optimizer.embeddingProvider`, default: 'tei', bad: ['other', ''] },
    { id: '', at: `${at}.optimizer.embeddingService`, good: [absent, 'http://e:8080'], bad: ['e:8080'] },
    durationRow(
      '3.limit.optimizer.embeddingServiceTimeout',
      `${at}.optimizer.embeddingServiceTimeout`,
      '30s',
    ),
    {
      id: '3.limit.optimizer.hybridSearchSemanticRatio',
      at: `${at}.optimizer.hybridSearchSemanticRatio`,
      default: '0.5',
      good: ['0.0', '1.0', '1', '.5'],
      bad: ['1.1', '2', '-0.1', 'half', '', 0.5],
    },
    {
      id: '3.limit.optimizer.semanticDistanceThreshold',
      at: `${at}.optimizer.semanticDistanceThreshold`,
      default: '1.0',
      good: ['0', '2', '2.0'],
      bad: ['2.1', '-1', '', 1],
    },
    {
      id: '3.limit.optimizer.maxToolsToReturn',
      at: `${at}.optimizer.maxToolsToReturn`,
      default: 8,
      good: [1, 50],
      bad: [0, 51, '8'],
    },
    { id: '', at: `${at}.optimizer.embeddingHeaders`, bad: [{ 'X-A': 'b' }] },
    {
      id: '',
      at: `${at}.optimizer`,
      good: [
        {
          embeddingProvider: 'compat',
          embeddingModel: 'm',
          embeddingService: 'https://e/v1',
          embeddingHeaders: { 'X-A': 'b' },
        },
        { embeddingProvider: 'openai', embeddingModel: 'm', embeddingService: 'https://e/v1' },
      ],
      bad: [
        { embeddingProvider: 'openai', embeddingService: 'https://e/v1' },
        { embeddingProvider: 'compat', embeddingService: 'https://e/v1' },
        { embeddingProvider: 'compat', embeddingModel: 'm' },
        ...[{ authorization: 'b' }, { 'Content-Type': 'b' }, { 'a b': 'b' }, { a: '' }, { a: 'x\ny' }].map(
          (embeddingHeaders) => ({
            embeddingProvider: 'compat',
            embeddingModel: 'm',
            embeddingService: 'https://e/v1',
            embeddingHeaders,
          }),
        ),
      ],
      failure: '*',
    },
  ],
}

const telemetry: Table = {
  name: 'config.telemetry',
  base: config({ telemetry: {} }),
  rows: [
    { id: '', at: `${at}.telemetry.caCertPath`, good: [absent, '/ca.crt'], bad: ['ca.crt'] },
    {
      id: '',
      at: `${at}.telemetry.customAttributes`,
      good: [absent, { a: 'b' }],
      bad: [{ a: 1 }],
      failure: '*',
    },
    booleanRow('', `${at}.telemetry.enablePrometheusMetricsPath`, false),
    { id: '', at: `${at}.telemetry.endpoint`, good: [absent, 'collector:4318'], bad: notString },
    {
      id: '',
      at: `${at}.telemetry.environmentVariables`,
      good: [absent, ['A']],
      bad: ['A', ['A,B']],
      failure: '*',
    },
    { id: '', at: `${at}.telemetry.headers`, good: [absent, { a: 'b' }], bad: [{ a: 'x\ry' }], failure: '*' },
    booleanRow('', `${at}.telemetry.insecure`, false),
    booleanRow('', `${at}.telemetry.metricsEnabled`, false),
    {
      id: '3.limit.telemetry.samplingRate',
      at: `${at}.telemetry.samplingRate`,
      default: '0.05',
      good: ['0', '0.0', '1', '1.0', '0.5'],
      bad: ['1.1', '.5', '', 0.05, '2'],
    },
    booleanRow('', `${at}.telemetry.tracingEnabled`, false),
    booleanRow('3.version.useLegacyAttributes', `${at}.telemetry.useLegacyAttributes`, true),
  ],
}

export const vmcpConfigTables: readonly Table[] = [
  top,
  aggregation,
  audit,
  backends,
  codeMode,
  pinning,
  extensions,
  guardrails,
  authentication,
  outgoing,
  ...strategyTables,
  operational,
  optimizer,
  telemetry,
]
