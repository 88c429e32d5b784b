/**
 * Headers that the configuration may set: admission and the running programs accept the same names and values in every
 * field.
 */
import t from 'tap'
import { stringify } from 'yaml'
import { validateResource } from '../../../hooks/index.ts'
import { parseVmcpConfig, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { telemetryViolations } from '../../../runtime/observe/index.ts'
import { makeOutgoing } from '../../../runtime/outgoing/index.ts'
import { makeOutgoingAuth } from '../../../runtime/vmcp/backends/outgoing-auth.ts'
import { withHeaderRules } from '../../../schemas/generate/headers.ts'
import {
  headerNameViolation,
  type HeaderUse,
  headerValueViolation,
  isRestrictedHeader,
  restrictedHeaders,
  type Telemetry,
  validateRuntime,
} from '../../../schemas/index.ts'

const uses: readonly HeaderUse[] = ['injected', 'passedThrough', 'service', 'collector']

/** Every restricted name of every use, members of name families, similar names, and unrestricted names. */
const names: readonly string[] = [
  ...new Set(uses.flatMap((use) => restrictedHeaders(use)).map((name) => name.replace('*', 'Anything'))),
  ...['Proxy-Authorization', 'Proxy-Authenticate', 'Proxy-Connection', 'X-Forwarded-For', 'X-Forwarded-Host'],
  ...['X-Forwarded-Proto', 'X-Forwarded-Port', 'x-forwarded-prefix', 'hOST', 'te', 'Mcp-Param-Region'],
  ...[
    'Authorization',
    'Cookie',
    'X-Api-Key',
    'X-Forwarded',
    'Hosts',
    'Tea',
    'Mcp-Server',
    'Proxy',
    'User-Agent',
  ],
  ...['Accept-Language', 'X-Content-Type', 'traceparent', "it's`|~", 'x'.repeat(255), 'x'.repeat(256)],
  ...['a b', 'a:b', 'é', 'a\n', ''],
]

const values = [
  '',
  'plain',
  'a\tb',
  'é',
  'ÿ',
  'x'.repeat(8192),
  'x'.repeat(8193),
  '€',
  'a\r\nb',
  'a\0',
  '\u007f',
  '日本',
]

function admitted(kind: string, spec: object): boolean {
  const doc = {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind,
    metadata: { name: 'x', namespace: 'default' },
    spec,
  }
  return validateResource(doc).violations.length === 0
}

function withoutError(run: () => unknown): boolean {
  try {
    run()
    return true
  } catch {
    return false
  }
}

const secret = { name: 's', key: 'k' }
const entry = {
  remoteUrl: 'https://mcp.example.com/mcp',
  transport: 'streamable-http',
  groupRef: { name: 'g' },
}
const proxy = { remoteUrl: 'https://mcp.example.com/mcp' }
const server = { groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' } }
const env = { TOKEN: 'x' }
const outgoing = makeOutgoing({ secret: (name) => env[name as 'TOKEN'] })
t.teardown(() => outgoing.close())

function vmcpFile(more: object): string {
  return stringify({
    name: 'v',
    groupRef: 'g',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: { conflictResolution: 'prefix' },
    backends: [],
    ...more,
  })
}

/** Returns the environment of a virtual server that sets these headers for one of its backends. */
function forwardedByVmcp(headers: object, more: Readonly<Record<string, string>> = {}): boolean {
  const auth = makeOutgoingAuth(
    { GATEHOUSE_HEADER_FORWARD_A: JSON.stringify(headers), ...more },
    undefined,
    silentLog,
  )
  return withoutError(() => auth.headersFor('a', {}))
}

function proxyFlag(
  flag: 'remoteForwardHeaders' | 'remoteForwardHeadersSecret',
  line: string,
  value = 'v',
): boolean {
  return withoutError(() =>
    resolveProxyConfig(
      'demo',
      { targetUri: 'http://127.0.0.1:9000', [flag]: [line] },
      { GATEHOUSE_SECRET_S: value },
    ),
  )
}

function proxyFile(headerForward: object): boolean {
  return (
    validateRuntime('proxy', { name: 'p', targetUri: 'https://a.example/mcp', headerForward }).violations
      .length === 0
  )
}

function strategyFile(strategy: object): boolean {
  return withoutError(() =>
    parseVmcpConfig(vmcpFile({ outgoingAuth: { source: 'inline', default: strategy } })),
  )
}

const tokenExchange = { tokenUrl: 'https://sts.example.com/token' }
const upstream = {
  name: 'hub',
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: 'https://hub.example/a',
    tokenEndpoint: 'https://hub.example/t',
    clientId: 'c',
    redirectUri: 'https://as.example/oauth/callback',
  },
}

function withUserInfo(headers: object) {
  const userInfo = { endpointUrl: 'https://hub.example/u', additionalHeaders: headers }
  return [{ ...upstream, oauth2Config: { ...upstream.oauth2Config, userInfo } }]
}

const authServer = { issuer: 'https://as.example' }
const optimizer = { embeddingProvider: 'compat', embeddingService: 'https://e.example', embeddingModel: 'm' }

function telemetry(headers: Readonly<Record<string, string>>): Telemetry {
  const { config } = validateRuntime(
    'vmcp',
    JSON.parse(
      JSON.stringify({
        name: 'v',
        groupRef: 'g',
        incomingAuth: { type: 'anonymous' },
        outgoingAuth: { source: 'inline' },
        aggregation: { conflictResolution: 'prefix' },
        telemetry: { endpoint: 'https://otel.example', tracingEnabled: true },
      }),
    ),
  )
  if (!config?.telemetry) throw new Error('the file is not valid')
  return { ...config.telemetry, headers }
}

interface Place {
  readonly what: string
  readonly use: HeaderUse
  readonly admission: (headers: Readonly<Record<string, string>>) => boolean
  readonly runtime: (headers: Readonly<Record<string, string>>) => boolean
  /** True when the value comes from another place. */
  readonly nameOnly?: true
}

const first = (headers: Readonly<Record<string, string>>): string => Object.keys(headers)[0] ?? ''
const pair = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)[0]?.join('=') ?? ''

const places: readonly Place[] = [
  {
    what: 'headers of an entry, at a virtual server',
    use: 'injected',
    admission: (headers) =>
      admitted('MCPServerEntry', { ...entry, headerForward: { addPlaintextHeaders: headers } }),
    runtime: (headers) => forwardedByVmcp({ addPlaintextHeaders: headers }),
  },
  {
    what: 'secret headers of an entry, at a virtual server',
    use: 'injected',
    nameOnly: true,
    admission: (headers) =>
      admitted('MCPServerEntry', {
        ...entry,
        headerForward: { addHeadersFromSecret: [{ headerName: first(headers), valueSecretRef: secret }] },
      }),
    runtime: (headers) =>
      forwardedByVmcp({ addHeadersFromSecret: { [first(headers)]: 'ID' } }, { GATEHOUSE_SECRET_ID: 'v' }),
  },
  {
    what: 'headers of a remote proxy, in its file',
    use: 'injected',
    admission: (headers) =>
      admitted('MCPRemoteProxy', { ...proxy, headerForward: { addPlaintextHeaders: headers } }),
    runtime: (headers) => proxyFile({ addPlaintextHeaders: headers }),
  },
  {
    what: 'secret headers of a remote proxy, in its file',
    use: 'injected',
    nameOnly: true,
    admission: (headers) =>
      admitted('MCPRemoteProxy', {
        ...proxy,
        headerForward: { addHeadersFromSecret: [{ headerName: first(headers), valueSecretRef: secret }] },
      }),
    runtime: (headers) => proxyFile({ addHeadersFromSecret: { [first(headers)]: 'ID' } }),
  },
  {
    what: 'headers of a remote proxy, as flags',
    use: 'injected',
    admission: (headers) =>
      admitted('MCPRemoteProxy', { ...proxy, headerForward: { addPlaintextHeaders: headers } }),
    runtime: (headers) => proxyFlag('remoteForwardHeaders', pair(headers)),
  },
  {
    what: 'an injected header',
    use: 'injected',
    nameOnly: true,
    admission: (headers) =>
      admitted('MCPExternalAuthConfig', {
        type: 'headerInjection',
        headerInjection: { headerName: first(headers), valueSecretRef: secret },
      }),
    runtime: (headers) =>
      outgoing.problems({
        type: 'header_injection',
        headerInjection: { headerName: first(headers), headerValueEnv: 'TOKEN' },
      }).length === 0,
  },
  {
    what: 'an injected header, in the file',
    use: 'injected',
    admission: (headers) =>
      admitted('VirtualMCPServer', {
        ...server,
        config: { outgoingAuth: { source: 'inline', default: injection(headers) } },
      }),
    runtime: (headers) =>
      strategyFile(injection(headers)) && outgoing.problems(injection(headers)).length === 0,
  },
  {
    what: 'the header of an exchanged token',
    use: 'injected',
    nameOnly: true,
    admission: (headers) =>
      admitted('MCPExternalAuthConfig', {
        type: 'tokenExchange',
        tokenExchange: { ...tokenExchange, audience: 'a', externalTokenHeaderName: first(headers) },
      }),
    runtime: (headers) =>
      outgoing.problems({
        type: 'token_exchange',
        tokenExchange: { ...tokenExchange, externalTokenHeaderName: first(headers) },
      }).length === 0,
  },
  {
    what: 'headers that are passed through',
    use: 'passedThrough',
    nameOnly: true,
    admission: (headers) => admitted('VirtualMCPServer', { ...server, passthroughHeaders: [first(headers)] }),
    runtime: (headers) =>
      withoutError(() => parseVmcpConfig(vmcpFile({ passthroughHeaders: [first(headers)] }))),
  },
  {
    what: 'headers that are passed through, in spec.config',
    use: 'passedThrough',
    nameOnly: true,
    admission: (headers) =>
      admitted('VirtualMCPServer', { ...server, config: { passthroughHeaders: [first(headers)] } }),
    runtime: (headers) =>
      withoutError(() => parseVmcpConfig(vmcpFile({ passthroughHeaders: [first(headers)] }))),
  },
  {
    what: 'headers for a userinfo endpoint',
    use: 'service',
    admission: (headers) =>
      admitted('MCPExternalAuthConfig', {
        type: 'embeddedAuthServer',
        embeddedAuthServer: { ...authServer, upstreamProviders: withUserInfo(headers) },
      }),
    runtime: (headers) =>
      withoutError(() =>
        parseAuthServerConfig(
          stringify({
            ...authServer,
            allowedAudiences: ['https://as.example'],
            upstreamProviders: withUserInfo(headers),
          }),
          {},
        ),
      ),
  },
  {
    what: 'headers for an embedding service',
    use: 'service',
    admission: (headers) =>
      admitted('VirtualMCPServer', {
        ...server,
        config: { optimizer: { ...optimizer, embeddingHeaders: headers } },
      }),
    runtime: (headers) =>
      withoutError(() =>
        parseVmcpConfig(vmcpFile({ optimizer: { ...optimizer, embeddingHeaders: headers } })),
      ),
  },
  {
    what: 'headers for a collector',
    use: 'collector',
    admission: (headers) =>
      admitted('MCPTelemetryConfig', {
        openTelemetry: {
          enabled: true,
          endpoint: 'https://otel.example',
          tracing: { enabled: true },
          headers,
        },
      }),
    runtime: (headers) => telemetryViolations(telemetry(headers), {}).length === 0,
  },
]

function injection(headers: Readonly<Record<string, string>>) {
  const [headerName, headerValue] = Object.entries(headers)[0] ?? []
  return { type: 'header_injection' as const, headerInjection: { headerName, headerValue } }
}

for (const { what, use, admission, runtime, nameOnly } of places) {
  t.test(`${what}: admission and runtime accept the same names`, async (t) => {
    for (const name of names) {
      const headers = { [name]: 'v' }
      const may = headerNameViolation(name, use) === undefined
      // Skip the empty name, which each field handles differently.
      if (name === '' || (what.endsWith('as flags') && name.trim() !== name)) continue
      t.equal(admission(headers), may, `admission: ${JSON.stringify(name.slice(0, 40))}`)
      t.equal(runtime(headers), may, `runtime: ${JSON.stringify(name.slice(0, 40))}`)
    }
  })
  if (nameOnly) continue
  t.test(`${what}: admission and runtime accept the same values`, async (t) => {
    for (const value of values) {
      const shown = JSON.stringify(value.slice(0, 40))
      t.equal(admission({ 'x-a': value }), runtime({ 'x-a': value }), `both: ${shown}`)
      if (value !== '') t.equal(runtime({ 'x-a': value }), headerValueViolation(value) === undefined, shown)
    }
  })
}

t.test('restricted names: headers for framing, routing and identity cannot be set', async (t) => {
  for (const use of uses) {
    for (const name of [
      'Host',
      'Connection',
      'TE',
      'Content-Length',
      'X-Forwarded-For',
      'proxy-anything',
      'Expect',
    ])
      t.ok(isRestrictedHeader(name, use), `${use}: ${name}`)
    t.notOk(isRestrictedHeader('X-Api-Key', use))
  }
  t.ok(isRestrictedHeader('authorization', 'passedThrough'))
  t.notOk(isRestrictedHeader('authorization', 'injected'), 'injection is meant for credentials')
  t.notOk(isRestrictedHeader('Accept', 'service'), 'a userinfo endpoint may require another type')
})

t.test('placeholders: an unknown placeholder stops the generator', async (t) => {
  t.throws(() => withHeaderRules({ rule: 'self.matches(%{restricted:nobody})' }), /restricted:nobody/)
  t.same(withHeaderRules({ description: '%{header-name}', rule: 'true' }), {
    description: '%{header-name}',
    rule: 'true',
  })
})
