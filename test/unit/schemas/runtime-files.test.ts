/** The files that hooks write and the runtime reads: defaults, rules, and the definition shared with spec.config. */
import t from 'tap'
import { formatViolations, type input, type RuntimeName, validateRuntime } from '../../../schemas/index.ts'
import type { Schema } from '../../../schemas/schema.ts'
import { bundle, resolved } from '../../../schemas/validation/bundle.ts'
import { type Json, withValue } from './tables/table.ts'

const vmcp: input.VmcpFile = {
  name: 'tools',
  groupRef: 'tools',
  incomingAuth: { type: 'anonymous' },
  outgoingAuth: { source: 'discovered' },
  aggregation: {},
  backends: [{ name: 'github', url: 'https://api.example.com/mcp', transport: 'streamable-http' }],
}

const authserver: input.AuthServerFile = {
  issuer: 'https://auth.example.com',
  allowedAudiences: ['https://mcp.example.com'],
  upstreamProviders: [
    {
      name: 'corp',
      type: 'oidc',
      oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'x', clientSecretEnv: 'SECRET' },
    },
  ],
}

const proxy: input.ProxyFile = { name: 'github', targetUri: 'https://api.example.com/mcp' }

const webhooks: input.WebhookFile = { validating: [{ name: 'check', url: 'https://hook.example' }] }

const catalogue: input.CatalogueFile = { name: 'tools', incomingAuth: { type: 'anonymous' } }

const files = { vmcp, authserver, catalogue, proxy, webhooks }

function says(name: RuntimeName, path: string, value: Json): string {
  const doc: { readonly [name: string]: Json } = JSON.parse(JSON.stringify(files[name]))
  return formatViolations(validateRuntime(name, withValue(doc, path, value)).violations)
}

await t.test('a method belongs to one extension', async (t) => {
  const custom = (...methods: string[][]): Json =>
    methods.map((own, i) => ({ id: `a/b${i}`, methods: own, routeBy: 'name' }))
  t.equal(
    says('vmcp', 'extensions', { custom: custom(['a/run'], ['b/run', 'a/run']) }),
    'extensions.custom: two extensions share a method; every method must belong to one extension',
  )
  t.equal(says('vmcp', 'extensions', { custom: custom(['a/run'], ['b/run']) }), '')
})

await t.test('no object requires a block whose fields all have defaults', async (t) => {
  const mayBeEmpty = (schema: Schema): boolean =>
    schema.properties !== undefined &&
    (schema.minProperties ?? 0) === 0 &&
    (schema.required ?? []).every((name) => {
      const field = resolved(schema.properties?.[name] ?? {})
      return field.default !== undefined || mayBeEmpty(field)
    })
  // Manifests are an exception: a Kubernetes object always has a spec, even an empty one.
  for (const [name, { required = [], properties = {} }] of Object.entries(bundle.defs))
    for (const field of required)
      if (field !== 'spec') t.notOk(mayBeEmpty(resolved(properties[field] ?? {})), `${name}.${field}`)
})

await t.test('runtime files: defaults are filled in', async (t) => {
  const virtual = validateRuntime('vmcp', vmcp)
  t.same(virtual.violations, [])
  t.same(virtual.config?.operational, {
    timeouts: { default: '30s' },
    failureHandling: {
      healthCheckInterval: '30s',
      healthCheckTimeout: '10s',
      unhealthyThreshold: 3,
      partialFailureMode: 'fail',
      statusReportingInterval: '30s',
      circuitBreaker: { enabled: false, failureThreshold: 5, timeout: '60s' },
    },
  })
  t.equal(virtual.config?.aggregation.conflictResolutionConfig.prefixFormat, '{workload}_')

  const server = validateRuntime('authserver', authserver)
  t.same(server.violations, [])
  t.same(server.config?.storage, { type: 'memory' })
  t.same(server.config?.tokenLifespans, {
    accessTokenLifespan: '1h',
    refreshTokenLifespan: '168h',
    refreshTokenGracePeriod: '60s',
    authCodeLifespan: '10m',
  })
  t.same(server.config?.scopesSupported, ['openid', 'profile', 'email', 'offline_access'])

  const transparent = validateRuntime('proxy', proxy)
  t.same(transparent.violations, [])
  t.equal(transparent.config?.host, '127.0.0.1')
  t.equal(transparent.config?.port, 0)
})

await t.test('runtime files: given values and the document are not changed', async (t) => {
  const given = { ...vmcp, operational: { timeouts: { perWorkload: { github: '5s' } } } }
  const before = structuredClone(given)
  const { config } = validateRuntime('vmcp', given)
  t.same(config?.operational.timeouts, { default: '30s', perWorkload: { github: '5s' } })
  t.same(given, before)
})

await t.test('vmcp: name, group and both kinds of authentication are required', async (t) => {
  const { violations } = validateRuntime('vmcp', {})
  t.same(
    violations.map(({ path }) => path),
    ['groupRef', 'incomingAuth', 'name', 'outgoingAuth'],
  )
})

await t.test('vmcp: fields that only the hooks can resolve are rejected', async (t) => {
  t.equal(
    says('vmcp', 'compositeToolRefs', [{ name: 'x' }]),
    'compositeToolRefs: compositeToolRefs cannot be resolved here; put the workflows into compositeTools',
  )
  t.match(
    says('vmcp', 'aggregation', { tools: [{ workload: 'a', toolConfigRef: { name: 'x' } }] }),
    /^aggregation\.tools: aggregation\.tools\[\]\.toolConfigRef cannot be resolved here/,
  )
})

await t.test('vmcp: rate limits need Redis and, per user, authenticated callers', async (t) => {
  const bucket = { maxTokens: 1, refillPeriod: '1s' }
  t.match(says('vmcp', 'rateLimiting', { shared: bucket }), /^sessionStorage: rateLimiting needs/)
  const redis: Json = { provider: 'redis', address: 'r:6379' }
  const doc = { ...vmcp, sessionStorage: redis, rateLimiting: { perUser: bucket } }
  t.match(
    formatViolations(validateRuntime('vmcp', doc).violations),
    /^incomingAuth\.type: rateLimiting\.perUser needs/,
  )
  t.same(validateRuntime('vmcp', { ...doc, incomingAuth: { type: 'local' } }).violations, [])
})

await t.test('authserver: rules of the file', async (t) => {
  for (const issuer of [
    'http://auth.example.com',
    'http://127.0.0.1.example.com',
    'http://localhost.example.com',
  ]) {
    t.match(says('authserver', 'issuer', issuer), /^issuer: issuer must be https/, issuer)
  }
  for (const issuer of ['http://localhost:8080', 'http://127.0.0.1/x', 'http://[::1]:80', 'https://auth']) {
    t.equal(says('authserver', 'issuer', issuer), '', issuer)
  }
  t.same(
    validateRuntime('authserver', { ...authserver, issuer: 'http://auth.ns.svc', insecureAllowHTTP: true })
      .violations,
    [],
  )
  t.match(says('authserver', 'storage', { type: 'redis' }), /^storage\.redis: redis must be set exactly/)
  t.equal(says('authserver', 'storage', { type: 'redis', redis: { addr: 'r:6379', passwordEnv: 'P' } }), '')
  t.match(
    says('authserver', 'storage', { type: 'redis', redis: { addr: 'r:6379' } }),
    /passwordEnv: is required/,
  )
  t.match(
    says('authserver', 'upstreamProviders[0].oidcConfig.clientSecretRef', { name: 'a', key: 'b' }),
    /unknown field; did you mean "clientSecret/,
  )
  t.match(
    says('authserver', 'signingKeyFiles', ['keys/a.pem']),
    /^signingKeyFiles\[0\]: expected an absolute file path/,
  )
  t.match(says('authserver', 'signingKeyFiles', ['/etc/../a.pem']), /must not contain '\.\.'/)
  t.match(says('authserver', 'allowedAudiences', []), /^allowedAudiences: needs at least 1 item/)
})

await t.test('authserver: an oauth2 upstream', async (t) => {
  const oauth2Config = { authorizationEndpoint: 'https://x/a', tokenEndpoint: 'https://x/t' }
  const upstream = (more: { readonly [name: string]: Json }) =>
    says('authserver', 'upstreamProviders', [
      { name: 'x', type: 'oauth2', oauth2Config: { ...oauth2Config, ...more } },
    ])
  t.equal(upstream({ clientId: 'x', clientSecretFile: '/run/secret' }), '')
  t.match(upstream({}), /exactly one of clientId and dcrConfig/)
  t.equal(upstream({ dcrConfig: { discoveryUrl: 'https://x/d', initialAccessTokenEnv: 'T' } }), '')
  t.match(
    upstream({ dcrConfig: { discoveryUrl: 'https://x/d' }, clientSecretEnv: 'S' }),
    /a client secret cannot be set together with dcrConfig/,
  )
  t.match(upstream({ dcrConfig: { registrationEndpoint: 'https://x/r' } }), /scopes must be set when/)
})

await t.test('proxy: rules of the file', async (t) => {
  t.match(
    says('proxy', 'stdio', { command: 'server' }),
    /^targetUri: exactly one of targetUri, stdio and attach/,
  )
  t.match(formatViolations(validateRuntime('proxy', { name: 'x' }).violations), /^targetUri: exactly one of/)
  t.same(
    validateRuntime('proxy', { name: 'x', stdio: { command: 'server', args: ['-v'] }, proxyMode: 'sse' })
      .violations,
    [],
  )
  t.match(says('proxy', 'proxyMode', 'sse'), /^proxyMode: proxyMode can differ from transport only/)
  t.match(says('proxy', 'port', 70000), /^port: expected a whole number from 0 to 65535, found 70000/)
})

await t.test('proxy: an incomplete security setting is rejected', async (t) => {
  t.match(
    says('proxy', 'oidc', {}),
    /^oidc\.audience: audience or resource must be set.*\noidc\.issuer: one of issuer/,
  )
  t.match(
    says('proxy', 'oidc', { audience: 'x' }),
    /^oidc\.issuer: one of issuer, jwksUrl and introspectionUrl/,
  )
  t.match(says('proxy', 'oidc', { issuer: 'https://x' }), /^oidc\.audience: /)
  t.equal(says('proxy', 'oidc', { issuer: 'https://x', audience: 'a' }), '')
  t.equal(says('proxy', 'oidc', { jwksUrl: 'https://x/keys', resource: 'https://m' }), '')
  t.match(
    says('proxy', 'oidc', { issuer: 'https://x', audience: 'a', clientSecretFile: '/s' }),
    /clientSecretFile needs clientId/,
  )
  t.match(says('proxy', 'remoteAuth', { enabled: true }), /^remoteAuth\.issuer: set issuer or both/)
  t.match(
    says('proxy', 'remoteAuth', { authorizeUrl: 'https://x/a' }),
    /^remoteAuth\.tokenUrl: authorizeUrl and tokenUrl must be set together/,
  )
  t.match(
    says('proxy', 'remoteAuth', {
      issuer: 'https://x',
      authorizeUrl: 'https://x/a',
      tokenUrl: 'https://x/t',
    }),
    /issuer cannot be combined/,
  )
  t.match(says('proxy', 'remoteAuth', { bearerTokenEnv: 'A', bearerTokenFile: '/b' }), /mutually exclusive/)
  t.match(
    says('proxy', 'remoteAuth', { enabled: true, issuer: 'https://x', bearerTokenEnv: 'A' }),
    /a bearer token and a login are mutually exclusive/,
  )
})

await t.test('runtime files: an unknown file name throws a TypeError', async (t) => {
  const other: RuntimeName = JSON.parse('"other"')
  t.throws(() => validateRuntime(other, {}), TypeError)
})
