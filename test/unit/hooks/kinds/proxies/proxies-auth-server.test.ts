/** Proxies with an embedded authorization server: authServerRef and externalAuthConfigRef. */
import t from 'tap'
import { proves } from '../../../../helpers/proves.ts'
import { auth, embedded, oidcConfig, resource, server, world } from '../../../../hooks/resources.ts'
import type { World } from '../../../../hooks/world.ts'
import { condition, fileOf } from './proxy-response.ts'

const authServer = { authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' } }

const login = (resourceUrl = 'https://f.example.com') => ({
  oidcConfigRef: { name: 'login', audience: resourceUrl, resourceUrl },
})

t.test(
  'authServerRef: an embedded server next to the proxy, and the exchange for the upstream’s token',
  async (t) => {
    const w = world(oidcConfig(), auth.server, server('files', { ...login(), ...authServer })).settle()
    t.match(fileOf(w, 'mcp-files-proxy-config', 'authserver-config.yaml'), {
      issuer: 'https://login.example.com',
      allowedAudiences: ['https://f.example.com'],
    })
    t.strictSame(fileOf(w, 'mcp-files-proxy-config')['outgoingAuth'], {
      type: 'upstream_inject',
      upstreamInject: { providerName: 'corp' },
    })
    const stripped = world(
      oidcConfig(),
      resource('MCPExternalAuthConfig', 'server', {
        type: 'embeddedAuthServer',
        embeddedAuthServer: embedded({ disableUpstreamTokenInjection: true }),
      }),
      server('files', { ...login(), ...authServer }),
    ).settle()
    t.notOk('outgoingAuth' in fileOf(stripped, 'mcp-files-proxy-config'))
  },
)

t.test('authServerRef: an incompatible configuration is rejected with a condition', async (t) => {
  proves('2.embeddedAuthServer.primaryUpstreamProvider.scope')
  const base = embedded() as { upstreamProviders: { name: string }[] }
  const two = {
    ...base,
    upstreamProviders: [...base.upstreamProviders, { ...base.upstreamProviders[0], name: 'other' }],
  }
  const server2 = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: two,
  })
  const bound = (dpop: object) =>
    resource('MCPExternalAuthConfig', 'server', {
      type: 'embeddedAuthServer',
      embeddedAuthServer: embedded({ dpop }),
    })
  const required = { mode: 'required' }
  const wrong: [World, string, RegExp][] = [
    [
      world(oidcConfig(), bound(required), server('files', { ...login(), ...authServer })),
      'AuthServerRefInvalidConfig',
      /spec\.dpop\.mode: must not be off/,
    ],
    [
      world(oidcConfig(), auth.server, server('files', { ...login(), ...authServer, dpop: required })),
      'AuthServerRefInvalidConfig',
      /spec\.dpop\.mode: must not be required/,
    ],
    [
      world(oidcConfig(), server2, server('files', { ...login(), ...authServer })),
      'MultiUpstreamNotSupported',
      /supports one/,
    ],
    [
      world(
        oidcConfig(),
        auth.header,
        server('files', { ...login(), authServerRef: { kind: 'MCPExternalAuthConfig', name: 'header' } }),
      ),
      'AuthServerRefInvalidType',
      /headerInjection/,
    ],
    [world(auth.server, server('files', authServer)), 'AuthServerRefInvalidConfig', /requires oidcConfigRef/],
    [
      world(
        oidcConfig({ issuer: 'https://other.example.com' }),
        auth.server,
        server('files', { ...login(), ...authServer }),
      ),
      'AuthServerRefInvalidConfig',
      /issuer/,
    ],
    [
      world(
        oidcConfig(),
        auth.server,
        server('files', {
          oidcConfigRef: { name: 'login', audience: 'x', resourceUrl: 'https://f.example.com' },
          ...authServer,
        }),
      ),
      'AuthServerRefInvalidConfig',
      /audience/,
    ],
    [
      world(
        oidcConfig(),
        auth.server,
        server('files', { ...login(), ...authServer, externalAuthConfigRef: { name: 'server' } }),
      ),
      'AuthServerRefInvalidConfig',
      /both/,
    ],
  ]
  for (const [w, reason, message] of wrong) {
    t.match(condition(w.settle(), 'MCPServer', 'files', 'AuthServerRefValidated'), {
      status: 'False',
      reason,
      message,
    })
  }
  const primary = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({ primaryUpstreamProvider: 'corp' }),
  })
  const w = world(oidcConfig(), primary, server('files', { ...login(), ...authServer })).settle()
  t.notOk('primaryUpstreamProvider' in fileOf(w, 'mcp-files-proxy-config', 'authserver-config.yaml'))
})
