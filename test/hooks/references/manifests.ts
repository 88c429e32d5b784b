/** Manifests with the references that no golden case sets. */
import { oidc, remote, server, virtual } from '../resources.ts'
import { resource, type Stored } from '../world.ts'

const ref = (name: string, key = 'key') => ({ name, key })
const keyAuth = (name: string) => ({ method: 'privateKeyJwt', privateKeyRef: ref(name, 'key.pem') })
const bundle = { configMapRef: ref('company-ca', 'ca.crt') }
const http = {
  url: 'https://pdp.example.com',
  caBundleRef: { name: 'pdp-ca' },
  clientCertificateSecretRef: { name: 'pdp-client' },
  bearerTokenSecretRef: ref('pdp-token'),
}
const point = { authzConfig: { type: 'httpv1', httpv1: { http, claimMapping: 'standard' } } }
const authzen = { authzConfig: { type: 'authzenv1', authzenv1: { http } } }
const policies = { authzConfig: { type: 'configMap', configMap: ref('policies', 'authz.json') } }
const exposure = { hostname: 'tools.example.com', ingress: { tlsSecretName: 'tools-tls' } }
const password = {
  sessionStorage: { provider: 'redis', address: 'redis:6379', passwordRef: ref('sessions') },
}

const endpoints = {
  authorizationEndpoint: 'https://hub.example.com/authorize',
  tokenEndpoint: 'https://hub.example.com/token',
}
const authServer = {
  issuer: 'https://login.example.com',
  signingKeySecretRefs: [ref('keys', 'signing')],
  hmacSecretRefs: [ref('keys', 'hmac')],
  clients: [{ clientId: 'job', clientSecretRefs: [ref('job', 'secret')], scopes: ['tools:read'] }],
  upstreamProviders: [
    {
      name: 'hub',
      type: 'oauth2',
      oauth2Config: { ...endpoints, clientId: 'door', clientSecretRef: ref('hub-client') },
      clientCertificateSecretRef: { name: 'hub-certificate' },
    },
    {
      name: 'keyed',
      type: 'oauth2',
      oauth2Config: { ...endpoints, clientId: 'door', clientAuth: keyAuth('keyed') },
    },
    {
      name: 'corp',
      type: 'oidc',
      oidcConfig: {
        issuerUrl: 'https://corp.example.com',
        clientId: 'door',
        clientAuth: keyAuth('corp-key'),
      },
    },
    {
      name: 'registered',
      type: 'oauth2',
      oauth2Config: {
        ...endpoints,
        scopes: ['read'],
        dcrConfig: {
          registrationEndpoint: 'https://hub.example.com/register',
          initialAccessTokenRef: ref('hub-registration'),
        },
      },
    },
  ],
  storage: {
    type: 'redis',
    redis: {
      sentinelConfig: { masterName: 'main', sentinelService: { name: 'sentinel', port: 26_379 } },
      aclUserConfig: { passwordSecretRef: ref('redis-password'), usernameSecretRef: ref('redis-user') },
      tls: { caCertSecretRef: ref('redis-ca', 'ca.crt') },
      sentinelTls: { caCertSecretRef: ref('sentinel-ca', 'ca.crt') },
    },
  },
}

const hook = { url: 'https://hook.example.com/hook', hmacSecretRef: ref('hook-hmac') }
const tlsConfig = {
  caSecretRef: ref('hook-ca', 'ca.crt'),
  clientCertSecretRef: ref('hook-client', 'tls.crt'),
  clientKeySecretRef: ref('hook-client-key', 'tls.key'),
}
const external = (type: string, block: object): Stored =>
  resource('MCPExternalAuthConfig', 'credentials', { type, [type]: block })

export const referenceManifests: readonly Stored[] = [
  external('basicAuth', { usernameSecretRef: ref('user'), passwordSecretRef: ref('word') }),
  external('embeddedAuthServer', authServer),
  external('tokenExchange', {
    tokenUrl: 'https://idp.example.com/token',
    audience: 'https://api.example.com',
    clientId: 'door',
    clientSecretRef: ref('exchange'),
  }),
  external('tokenExchange', {
    tokenUrl: 'https://idp.example.com/token',
    audience: 'https://api.example.com',
    clientId: 'door',
    clientAuth: keyAuth('exchange-key'),
  }),
  external('obo', {
    tenantId: 'corp.example.com',
    clientId: 'door',
    audience: 'api://crm',
    clientAuth: keyAuth('obo-key'),
  }),
  external('clientCredentials', {
    issuer: 'https://idp.example.com',
    clientId: 'door',
    clientSecretRef: ref('own-secret'),
  }),
  external('xaa', {
    idpTokenUrl: 'https://idp.example.com/token',
    idpClientId: 'door',
    idpClientSecretRef: ref('idp'),
    targetTokenUrl: 'https://target.example.com/token',
    targetAudience: 'https://target.example.com',
    targetClientId: 'door',
    targetClientSecretRef: ref('target'),
  }),
  external('xaa', {
    idpTokenUrl: 'https://idp.example.com/token',
    idpClientId: 'door',
    idpClientAuth: keyAuth('idp-key'),
    targetTokenUrl: 'https://target.example.com/token',
    targetAudience: 'https://target.example.com',
    targetClientId: 'door',
    targetClientAuth: keyAuth('target-key'),
  }),
  resource('MCPAuthzConfig', 'policies', {
    type: 'httpv1',
    config: {
      http: {
        url: 'https://pdp.example.com',
        ca_bundle_ref: { name: 'pdp-ca' },
        client_certificate_secret_ref: { name: 'pdp-client' },
        bearer_token_secret_ref: ref('pdp-token'),
      },
      claim_mapping: 'standard',
    },
  }),
  resource('MCPOIDCConfig', 'login', {
    type: 'inline',
    inline: { issuer: 'https://login.example.com', caBundleRef: bundle },
  }),
  resource('MCPTelemetryConfig', 'collector', {
    openTelemetry: {
      enabled: true,
      endpoint: 'collector.example.com:4318',
      tracing: { enabled: true },
      caBundleRef: bundle,
    },
  }),
  resource('MCPWebhookConfig', 'company', {
    mutating: [{ name: 'mask', ...hook, tlsConfig }],
    validating: [{ name: 'dlp', ...hook, tlsConfig }],
  }),
  server('files', { ...point, ...password, exposure }),
  server('files', authzen),
  server('files', policies),
  remote('crm', { ...point, ...password, exposure }),
  remote('crm', authzen),
  remote('crm', { ...policies, tls: { secretName: 'crm-tls', clientCABundleRef: bundle } }),
  virtual({ incomingAuth: { type: 'anonymous', ...point }, ...password, exposure }),
  virtual({ incomingAuth: { type: 'anonymous', ...authzen } }),
  virtual({ incomingAuth: { type: 'anonymous', ...policies } }),
  virtual({ incomingAuth: oidc, authServerConfig: authServer }),
]
