/** VirtualMCPServer: incoming authentication, and the settings of its authorization server. */
import t from 'tap'
import { parse } from 'yaml'

import { condition, configOf, dataOf, door, statusOf } from '../../../../hooks/rendered.ts'
import { validateRuntime } from '../../../../../schemas/index.ts'
import { proves } from '../../../../helpers/proves.ts'
import {
  authzConfig,
  configMap,
  embedded,
  oidc,
  oidcConfig,
  policy,
  resource,
  virtual,
} from '../../../../hooks/resources.ts'
import type { World } from '../../../../hooks/world.ts'

t.test(
  "incomingAuth: OIDC settings combine the shared configuration with this server's values",
  async (t) => {
    proves(
      '3.spec.incomingAuth.oidcConfigRef',
      '3.spec.incomingAuth.oidcConfigRef.audience',
      '3.spec.incomingAuth.oidcConfigRef.resourceUrl',
      '3.spec.incomingAuth.oidcConfigRef.scopes',
      '3.config.incomingAuth',
      '3.config.incomingAuth.oidc.clientSecretEnv',
      '3.status.oidcConfigHash',
      '3.reference.MCPOIDCConfig',
      '3.service.converter',
      '3.auth.incoming.1',
    )
    const config = oidcConfig({
      clientId: 'c',
      clientSecretRef: { name: 'tokens', key: 'client' },
      jwksAllowPrivateIP: true,
    })
    const w = door({ incomingAuth: oidc, config: { incomingAuth: { type: 'anonymous' } } }, config)
    t.match(configOf(w)['incomingAuth'], {
      type: 'oidc',
      oidc: {
        issuer: 'https://login.example.com',
        audience: 'https://door.example.com/mcp',
        resource: 'http://vmcp-door.team.svc.cluster.local:4483/mcp',
        scopes: ['openid'],
        clientId: 'c',
        clientSecretEnv: 'VMCP_OIDC_CLIENT_SECRET',
        jwksAllowPrivateIp: true,
      },
    })
    t.match(statusOf(w), { oidcConfigHash: /^[0-9a-f]{64}$/, phase: 'Ready' })
    const own = door(
      {
        incomingAuth: {
          type: 'oidc',
          oidcConfigRef: {
            name: 'login',
            audience: 'a',
            resourceUrl: 'https://d.example.com',
            scopes: ['x'],
          },
        },
      },
      config,
    )
    t.match(configOf(own)['incomingAuth'], { oidc: { resource: 'https://d.example.com', scopes: ['x'] } })
    own.apply(virtual()).ready()
    t.notOk('oidcConfigHash' in statusOf(own), 'the hash is removed with the reference')
  },
)

t.test('incomingAuth: the client id defaults to the audience', async (t) => {
  proves('3.config.incomingAuth.oidc.clientId')
  const expected = {
    oidc: { audience: 'https://door.example.com/mcp', clientId: 'https://door.example.com/mcp' },
  }
  t.match(configOf(door({ incomingAuth: oidc }, oidcConfig()))['incomingAuth'], expected)
  const account = resource('MCPOIDCConfig', 'login', {
    type: 'kubernetesServiceAccount',
    kubernetesServiceAccount: {},
  })
  t.match(configOf(door({ incomingAuth: oidc }, account))['incomingAuth'], expected)
  const longest = `https://door.example.com/${'x'.repeat(2023)}`
  const reference = { name: 'login', audience: longest }
  const file = configOf(door({ incomingAuth: { type: 'oidc', oidcConfigRef: reference } }, oidcConfig()))
  t.strictSame(validateRuntime('vmcp', file).violations, [])
  t.match(file['incomingAuth'], { oidc: { clientId: longest } })
})

t.test('authServerConfig: allowConfidentialClientRegistration is rendered only when it is set', async (t) => {
  const rendered = (more: object): unknown =>
    parse(
      dataOf(door({ incomingAuth: issued, authServerConfig: embedded(more) }, oidcConfig()))[
        'authserver-config.yaml'
      ] ?? '',
    )
  for (const value of [true, false]) {
    t.match(rendered({ allowConfidentialClientRegistration: value }), {
      allowConfidentialClientRegistration: value,
    })
  }
  t.notMatch(JSON.stringify(rendered({})), 'allowConfidentialClientRegistration')
})

t.test(
  'incomingAuth: a service account named in the configuration is the only allowed subject',
  async (t) => {
    const account = {
      type: 'kubernetesServiceAccount',
      kubernetesServiceAccount: { serviceAccount: 'agent' },
    }
    const w = door({ incomingAuth: oidc }, resource('MCPOIDCConfig', 'login', account))
    t.match(configOf(w)['incomingAuth'], {
      oidc: {
        issuer: 'https://kubernetes.default.svc',
        subject: 'system:serviceaccount:team:agent',
        caBundlePath: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
        jwksAllowPrivateIp: true,
      },
    })
  },
)

t.test('authorization: inline, ConfigMap and shared settings have the same rendered form', async (t) => {
  proves(
    '3.spec.incomingAuth.authzConfig',
    '3.spec.incomingAuth.authzConfigRef',
    '3.spec.incomingAuth.authzConfig.inline.entitiesJson',
    '3.spec.incomingAuth.authzConfig.groupClaimName',
    '3.spec.incomingAuth.authzConfig.roleClaimName',
    '3.config.incomingAuth.authz.policies',
    '3.config.incomingAuth.authz.entitiesJson',
    '3.config.incomingAuth.authz.groupClaimName',
    '3.config.incomingAuth.authz.roleClaimName',
    '3.status.authzConfigHash',
    '3.reference.MCPAuthzConfig',
    '3.auth.incoming.2',
  )
  const expected = {
    type: 'cedar',
    policies: [policy],
    entitiesJson: '[]',
    groupEntityType: 'ServiceGroup',
    groupClaimName: 'g',
    roleClaimName: 'r',
  }
  const names = { groupClaimName: 'g', roleClaimName: 'r' }
  const envelope = {
    version: '1.0',
    type: 'cedarv1',
    cedar: { policies: [policy], group_claim_name: 'theirs', role_claim_name: 'r' },
  }
  const inline = door({
    incomingAuth: {
      type: 'anonymous',
      authzConfig: { type: 'inline', inline: { policies: [policy] }, ...names },
    },
  })
  const map = door(
    {
      incomingAuth: {
        type: 'anonymous',
        authzConfig: { type: 'configMap', configMap: { name: 'authz' }, groupClaimName: 'g' },
      },
    },
    configMap('authz', { 'authz.json': JSON.stringify(envelope) }),
  )
  const shared = door(
    { incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'policies' } } },
    authzConfig({ group_claim_name: 'g', role_claim_name: 'r' }),
  )
  for (const w of [inline, map, shared]) t.strictSame(configOf(w)['incomingAuth']?.['authz'], expected)
  t.match(statusOf(shared), { authzConfigHash: /^[0-9a-f]{64}$/ })
  t.notOk('authzConfigHash' in statusOf(inline))
})

t.test('authorization: a missing or invalid ConfigMap stops the server with a reason', async (t) => {
  const spec = {
    incomingAuth: { type: 'anonymous', authzConfig: { type: 'configMap', configMap: { name: 'authz' } } },
  }
  t.match(condition(door(spec), 'AuthConfigured'), { status: 'False', reason: 'AuthzConfigMapNotFound' })
  for (const text of ['no json', '{"type":"rego"}', '{"type":"cedarv1","cedar":{"policies":["permit("]}}']) {
    const w = door(spec, configMap('authz', { 'authz.json': text }))
    t.match(condition(w, 'AuthConfigured'), { status: 'False', reason: 'AuthzConfigMapInvalid' }, text)
    t.match(statusOf(w), { phase: 'Failed' })
  }
})

const issued = {
  type: 'oidc',
  oidcConfigRef: { name: 'login', audience: 'https://d.example.com', resourceUrl: 'https://d.example.com' },
}

t.test('authServerConfig: becomes a second file, with keys mounted and secrets named', async (t) => {
  proves('3.spec.authServerConfig', '3.auth.incoming.3', '3.spec.authServerConfig.issuer', '2.service.server')
  const w = door({ incomingAuth: issued, authServerConfig: embedded() }, oidcConfig())
  const file = parse(dataOf(w)['authserver-config.yaml'] ?? '') as Record<string, unknown>
  t.match(file, {
    issuer: 'https://login.example.com',
    allowedAudiences: ['https://d.example.com'],
    signingKeyFiles: ['/etc/gatehouse/authserver/keys/0/key.pem', '/etc/gatehouse/authserver/keys/1/key.pem'],
    hmacSecretFiles: ['/etc/gatehouse/authserver/hmac/0/secret'],
    upstreamProviders: [
      {
        oidcConfig: {
          clientSecretEnv: 'GATEHOUSE_UPSTREAM_CLIENT_SECRET_CORP',
          redirectUri: 'https://d.example.com/oauth/callback',
        },
      },
    ],
  })
  for (const issuer of ['https://other.example.com', 'https://login.example.com/other']) {
    const wrong = door({ incomingAuth: issued, authServerConfig: embedded({ issuer }) }, oidcConfig())
    t.match(condition(wrong, 'AuthServerConfigValidated'), {
      status: 'False',
      message: /issuer must match the MCPOIDCConfig of incomingAuth/,
    })
    t.match(statusOf(wrong), { phase: 'Failed' })
  }
})

t.test(
  'authServerConfig: reconciliation requires insecureAllowHTTP for an http issuer that is not localhost',
  async (t) => {
    proves(
      '3.spec.authServerConfig.insecureAllowHTTP',
      '3.error.issuer.http',
      '3.event.AuthServerConfigValidated',
    )
    const at = (issuer: string, more: object = {}) =>
      door(
        { incomingAuth: issued, authServerConfig: embedded({ issuer, ...more }) },
        oidcConfig({ issuer, insecureAllowHTTP: true }),
      )
    for (const host of [
      'login.example.com',
      'localhost.example.com',
      '127.0.0.1.example.com',
      '128.0.0.1',
      '[::2]',
    ]) {
      t.match(condition(at(`http://${host}`), 'AuthServerConfigValidated'), {
        status: 'False',
        reason: 'AuthServerConfigInvalid',
      })
    }
    t.match(
      condition(at('http://login.example.com', { insecureAllowHTTP: true }), 'AuthServerConfigValidated'),
      { status: 'True' },
    )
    for (const host of ['localhost:8080', '127.0.0.1', '127.9.9.9:8080', '[::1]:8080'])
      t.match(
        condition(at(`http://${host}`), 'AuthServerConfigValidated'),
        { status: 'True', reason: 'AuthServerConfigValid' },
        host,
      )
  },
)

t.test(
  'primaryUpstreamProvider: the spec field wins, then the deprecated inline field with an event, then the first upstream',
  async (t) => {
    proves(
      '3.event.AuthzPrimaryUpstreamProviderDeprecated',
      '3.spec.incomingAuth.authzConfig.inline.primaryUpstreamProvider',
      '3.config.incomingAuth.authz.primaryUpstreamProvider',
    )
    const base = embedded() as { upstreamProviders: { name: string }[] }
    const upstreamProviders = [...base.upstreamProviders, { ...base.upstreamProviders[0], name: 'other' }]
    const at = (server: object, inline: object) =>
      door(
        {
          incomingAuth: {
            ...issued,
            authzConfig: { type: 'inline', inline: { policies: [policy], ...inline } },
          },
          authServerConfig: { ...base, upstreamProviders, ...server },
        },
        oidcConfig(),
      )
    const primary = (w: World) => configOf(w)['incomingAuth']?.['authz']?.['primaryUpstreamProvider']
    const events = (w: World) => {
      const hook = w.hooks.byKind('VirtualMCPServer')
      const request = w.request('VirtualMCPServer', 'door')
      return hook?.events(request, hook.sync(request)) ?? []
    }
    const deprecated = at({}, { primaryUpstreamProvider: 'other' })
    t.equal(primary(deprecated), 'other')
    t.match(events(deprecated), [{ type: 'Warning', reason: 'AuthzPrimaryUpstreamProviderDeprecated' }])
    t.match(condition(deprecated, 'AuthzPrimaryUpstreamProviderDeprecated'), { status: 'True' })
    const both = at({ primaryUpstreamProvider: 'corp' }, { primaryUpstreamProvider: 'other' })
    t.equal(primary(both), 'corp')
    t.strictSame(events(both), [], 'not consumed, no event')
    const neither = at({}, {})
    t.equal(primary(neither), 'corp')
    t.match(condition(neither, 'AuthzUpstreamSelectionWarning'), {
      status: 'True',
      reason: 'AuthzUpstreamAutoSelected',
    })
  },
)
