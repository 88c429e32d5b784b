/** Manifests that several hook tests use as a starting point, all in namespace `team`. */
import { servingCertificate } from './serving-certificate.ts'
import { configMap, resource, secret, type Stored, World } from './world.ts'

export const group = resource('MCPGroup', 'tools', { description: 'All tools of the team' })

export const server = (name: string, spec: object = {}): Stored =>
  resource('MCPServer', name, {
    groupRef: { name: 'tools' },
    image: `registry.example/${name}:1`,
    transport: 'streamable-http',
    ...spec,
  })

export const remote = (name: string, spec: object = {}): Stored =>
  resource('MCPRemoteProxy', name, {
    groupRef: { name: 'tools' },
    remoteUrl: `https://${name}.example.com/mcp`,
    ...spec,
  })

export const entry = (name: string, spec: object = {}): Stored =>
  resource('MCPServerEntry', name, {
    groupRef: { name: 'tools' },
    remoteUrl: `https://${name}.example.com/mcp`,
    transport: 'streamable-http',
    ...spec,
  })

/** A valid document with one tool and one skipped operation. */
export const petstore = JSON.stringify({
  openapi: '3.1.0',
  info: { title: 'Pets', version: '1' },
  paths: {
    '/pets': { get: { operationId: 'listPets', responses: { 200: { description: 'ok' } } } },
    '/export': {
      trace: { operationId: 'trace', responses: {} },
      get: { operationId: 'x'.repeat(200), responses: {} },
    },
  },
})

export const openApi = (name: string, spec: object = {}): Stored =>
  resource('MCPOpenAPIServer', name, {
    groupRef: { name: 'tools' },
    baseUrl: `https://${name}.example.com/v1`,
    document: { configMapRef: { name: 'petstore', key: 'openapi.json' } },
    ...spec,
  })

export const virtual = (spec: object = {}): Stored =>
  resource('VirtualMCPServer', 'door', {
    groupRef: { name: 'tools' },
    incomingAuth: { type: 'anonymous' },
    ...spec,
  })

export const oidcConfig = (spec: object = {}): Stored =>
  resource('MCPOIDCConfig', 'login', {
    type: 'inline',
    inline: { issuer: 'https://login.example.com', ...spec },
  })

/** Session storage that several pods share. */
export const redis = { sessionStorage: { provider: 'redis', address: 'redis:6379' } } as const

export const oidc = {
  type: 'oidc',
  oidcConfigRef: { name: 'login', audience: 'https://door.example.com/mcp' },
}

export const policy = 'permit(principal, action, resource);'

export const authzConfig = (config: object = {}): Stored =>
  resource('MCPAuthzConfig', 'policies', { type: 'cedarv1', config: { policies: [policy], ...config } })

const pointOverHttp = {
  url: 'https://pdp.example.com',
  timeout: 2,
  ca_bundle_ref: { name: 'company-ca' },
  client_certificate_secret_ref: { name: 'pdp-client' },
  bearer_token_secret_ref: { name: 'pdp', key: 'token' },
}

export const decisionPoint = (): Stored =>
  resource('MCPAuthzConfig', 'decision-point', {
    type: 'httpv1',
    config: {
      http: pointOverHttp,
      claim_mapping: 'standard',
      context: { include_operation: true },
    },
  })

export const authzenPoint = (): Stored =>
  resource('MCPAuthzConfig', 'authzen-point', {
    type: 'authzenv1',
    config: {
      http: pointOverHttp,
      context: { include_args: true },
    },
  })

export const decisionPointObjects = (): readonly Stored[] => [
  secret('pdp-client', servingCertificate),
  secret('pdp', { token: 't' }),
  configMap('company-ca', { 'ca.crt': 'pem' }),
]

export const telemetryConfig = (openTelemetry: object = {}): Stored =>
  resource('MCPTelemetryConfig', 'otel', {
    openTelemetry: {
      enabled: true,
      endpoint: 'collector.example.com:4318',
      tracing: { enabled: true, samplingRate: '0.1' },
      sensitiveHeaders: [{ name: 'x-api-key', secretKeyRef: { name: 'otel', key: 'key' } }],
      ...openTelemetry,
    },
    prometheus: { enabled: true },
  })

export const webhookConfig = (): Stored =>
  resource('MCPWebhookConfig', 'company', {
    mutating: [
      {
        name: 'mask',
        url: 'https://mask.example.com/hook',
        phase: 'response',
        hmacSecretRef: { name: 'webhooks', key: 'hmac' },
      },
    ],
    validating: [
      {
        name: 'dlp',
        url: 'https://dlp.example.com/hook',
        timeout: '2s',
        match: { methods: ['tools/call'], backends: ['files'] },
        tlsConfig: {
          caSecretRef: { name: 'webhooks', key: 'ca' },
          clientCertSecretRef: { name: 'webhook-client', key: 'tls.crt' },
          clientKeySecretRef: { name: 'webhook-client', key: 'tls.key' },
        },
      },
    ],
  })

export const webhookSecrets = (): readonly Stored[] => [
  secret('webhooks', { hmac: 's', ca: 'pem' }),
  secret('webhook-client', servingCertificate),
]

export const toolConfig = (spec: object = {}): Stored =>
  resource('MCPToolConfig', 'readonly', {
    toolsFilter: ['say'],
    toolsOverride: { echo: { name: 'say', description: 'Says it' } },
    ...spec,
  })

export const toolLock = (spec: object = {}): Stored =>
  resource('MCPToolLock', 'search', {
    backendRef: { kind: 'MCPServerEntry', name: 'search' },
    tools: [{ name: 'search', definition: { name: 'search', inputSchema: { type: 'object' } } }],
    ...spec,
  })

/** One MCPExternalAuthConfig for each type, named after the type in lower case. */
export const auth = {
  bearer: resource('MCPExternalAuthConfig', 'bearer', {
    type: 'bearerToken',
    bearerToken: { tokenSecretRef: { name: 'tokens', key: 'bearer' } },
  }),
  header: resource('MCPExternalAuthConfig', 'header', {
    type: 'headerInjection',
    headerInjection: { headerName: 'X-API-Key', valueSecretRef: { name: 'tokens', key: 'api' } },
  }),
  exchange: resource('MCPExternalAuthConfig', 'exchange', {
    type: 'tokenExchange',
    tokenExchange: {
      tokenUrl: 'https://login.example.com/token',
      audience: 'backend',
      clientId: 'door',
      clientSecretRef: { name: 'tokens', key: 'client' },
      scopes: ['read'],
      subjectTokenType: 'id_token',
    },
  }),
  sts: resource('MCPExternalAuthConfig', 'sts', {
    type: 'cloudSts',
    cloudSts: {
      region: 'eu-west-1',
      roleMappings: [
        { roleArn: 'arn:aws:iam::123456789012:role/admin', claim: 'admins', priority: 1 },
        { roleArn: 'arn:aws:iam::123456789012:role/reader', matcher: '"read" in claims["scopes"]' },
      ],
    },
  }),
  inject: resource('MCPExternalAuthConfig', 'inject', {
    type: 'upstreamInject',
    upstreamInject: { providerName: 'corp' },
  }),
  obo: resource('MCPExternalAuthConfig', 'obo', {
    type: 'obo',
    obo: {
      tenantId: 'corp.example.com',
      clientId: 'door',
      clientSecretRef: { name: 'tokens', key: 'client' },
      scopes: ['api://backend/.default'],
      cacheSkew: '30s',
    },
  }),
  xaa: resource('MCPExternalAuthConfig', 'xaa', {
    type: 'xaa',
    xaa: {
      idpTokenUrl: 'https://login.example.com/token',
      idpClientId: 'door',
      idpClientSecretRef: { name: 'tokens', key: 'client' },
      targetTokenUrl: 'https://target.example.com/token',
      targetAudience: 'https://target.example.com',
    },
  }),
  none: resource('MCPExternalAuthConfig', 'none', { type: 'unauthenticated' }),
  server: resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded(),
  }),
} as const

/** Returns an embedded authorization server with one OIDC upstream called corp. */
export function embedded(more: object = {}): object {
  return {
    issuer: 'https://login.example.com',
    signingKeySecretRefs: [
      { name: 'keys', key: 'now' },
      { name: 'keys', key: 'before' },
    ],
    hmacSecretRefs: [{ name: 'keys', key: 'hmac' }],
    upstreamProviders: [
      {
        name: 'corp',
        type: 'oidc',
        oidcConfig: {
          issuerUrl: 'https://corp.example.com',
          clientId: 'door',
          clientSecretRef: { name: 'tokens', key: 'client' },
        },
      },
    ],
    ...more,
  }
}

export const secrets: readonly Stored[] = [
  secret('tokens', { bearer: 'b-value', api: 'a-value', client: 'c-value' }),
  secret('keys', { now: 'pem', before: 'pem', hmac: 'h'.repeat(32), 'ca.crt': 'pem' }),
  secret('otel', { key: 'o-value' }),
  secret('redis', { password: 'r-value', user: 'u' }),
]

/** Returns a world with the group and the Secrets. */
export function world(...objects: Stored[]): World {
  return new World().apply(group, ...secrets, ...objects)
}

export { configMap, resource, secret }
