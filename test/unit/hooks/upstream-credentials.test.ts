/** Keys, tokens and certificates of upstream providers: mounted files, rotations and missing Secrets. */
import t from 'tap'
import {
  embedded,
  oidcConfig,
  remote,
  resource,
  secret,
  server,
  virtual,
  world,
} from '../../hooks/resources.ts'
import { servingCertificate } from '../../hooks/serving-certificate.ts'
import type { World } from '../../hooks/world.ts'
import { condition, fileOf } from './kinds/proxies/proxy-response.ts'

const clientCertificate = secret('remote-client', servingCertificate)
const rotated = { ...servingCertificate, 'tls.crt': `${servingCertificate['tls.crt']}\n` }
const oidc = { oidcConfigRef: { name: 'login', audience: url('door'), resourceUrl: url('door') } }
const upstreamProviders = [
  {
    name: 'corp',
    type: 'oidc',
    oidcConfig: {
      issuerUrl: 'https://corp.example.com',
      clientId: 'door',
      clientAuth: {
        method: 'privateKeyJwt',
        privateKeyRef: { name: 'upstream-key', key: 'key.pem' },
        signingAlg: 'ES256',
        assertionAudience: 'https://old.example.com',
      },
    },
    clientCertificateSecretRef: { name: 'remote-client' },
  },
]
const federated = {
  name: 'hub',
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: 'https://hub.example.com/authorize',
    tokenEndpoint: 'https://hub.example.com/token',
    clientId: 'door',
    clientAuth: { method: 'federated', serviceAccountToken: {} },
  },
}

function url(name: string): string {
  return `https://${name}.example.com`
}

const authServer = resource('MCPExternalAuthConfig', 'server', {
  type: 'embeddedAuthServer',
  embeddedAuthServer: embedded({ upstreamProviders }),
})
const hosts = [
  {
    kind: 'VirtualMCPServer',
    name: 'door',
    conditionType: 'AuthServerConfigValidated',
    map: 'door-vmcp-config',
    deployment: 'vmcp-door',
    objects: [
      virtual({
        incomingAuth: { type: 'oidc', ...oidc },
        authServerConfig: embedded({ upstreamProviders: [...upstreamProviders, federated] }),
      }),
    ],
  },
  {
    kind: 'MCPRemoteProxy',
    name: 'crm',
    conditionType: 'ExternalAuthConfigValidated',
    map: 'mcp-crm-remote-proxy-config',
    deployment: 'mcp-crm-remote-proxy',
    objects: [
      authServer,
      remote('crm', {
        ...oidc,
        externalAuthConfigRef: { name: 'server' },
        clientCertificateSecretRef: { name: 'remote-client' },
      }),
    ],
  },
  {
    kind: 'MCPServer',
    name: 'files',
    conditionType: 'AuthServerRefValidated',
    map: 'mcp-files-proxy-config',
    deployment: 'mcp-files-proxy',
    objects: [
      authServer,
      server('files', { ...oidc, authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' } }),
    ],
  },
] as const

const key = (value: string) => secret('upstream-key', { 'key.pem': value, other: 'x' })
const at = '/etc/gatehouse/authserver/upstreams'

interface Template {
  readonly spec: { readonly volumes: readonly { readonly name: string }[] }
}

const templateOf = (w: World, deployment: string): Template =>
  (w.get('Deployment', deployment)['spec'] as { template: Template }).template

for (const { kind, name, conditionType, map, deployment, objects } of hosts) {
  const start = () => world(oidcConfig(), key('a'), clientCertificate, ...objects).ready()

  t.test(`${kind}: the credentials of upstreams are mounted as files`, async (t) => {
    const w = start()
    t.match(condition(w, kind, name, conditionType), { status: 'True' })
    const [corp, hub] = fileOf(w, map, 'authserver-config.yaml')['upstreamProviders'] as object[]
    t.match(corp, {
      oidcConfig: {
        clientAuth: {
          method: 'privateKeyJwt',
          privateKeyPath: `${at}/corp/client-key/client-key`,
          signingAlg: 'ES256',
          assertionAudience: 'https://old.example.com',
        },
      },
      clientCertificatePath: `${at}/corp/certificate/tls.crt`,
      clientKeyPath: `${at}/corp/certificate/tls.key`,
    })
    const { volumes } = templateOf(w, deployment).spec
    const volumeOf = (part: string) => volumes.find((volume) => volume.name === `authserver-upstream-${part}`)
    t.match(volumeOf('client-key-corp'), {
      secret: { secretName: 'upstream-key', items: [{ key: 'key.pem', path: 'client-key' }] },
    })
    t.match(volumeOf('certificate-corp'), { secret: { secretName: 'remote-client' } })
    if (kind !== 'VirtualMCPServer') return
    t.match(hub, {
      oauth2Config: {
        clientAuth: { method: 'federated', assertionPath: `${at}/hub/client-token/client-token` },
      },
    })
    t.match(volumeOf('client-token-hub'), {
      projected: { sources: [{ serviceAccountToken: { audience: 'https://hub.example.com/token' } }] },
    })
  })

  t.test(`${kind}: a rotated key or certificate keeps the pods`, async (t) => {
    const w = start()
    const before = structuredClone(templateOf(w, deployment))
    w.apply(key('b'), secret('remote-client', rotated)).settle()
    t.strictSame(templateOf(w, deployment), before)
  })

  t.test(`${kind}: a missing key or certificate sets the condition and keeps the children`, async (t) => {
    const w = start()
    const before = structuredClone(w.get('Deployment', deployment)['spec'])
    w.remove('Secret', 'upstream-key').settle()
    t.match(condition(w, kind, name, conditionType), {
      status: 'False',
      message: /ot found: .*Secret upstream-key, key key\.pem/,
    })
    w.apply(key('a'), secret('remote-client', { 'tls.crt': 'cert' })).settle()
    if (kind !== 'MCPRemoteProxy')
      t.match(condition(w, kind, name, conditionType), {
        status: 'False',
        message: /ot found: .*Secret remote-client, key tls\.key/,
      })
    const wrongPair = { ...servingCertificate, 'tls.crt': servingCertificate['ca.crt'] }
    w.apply(secret('remote-client', wrongPair)).settle()
    t.match(condition(w, kind, name, conditionType), {
      status: 'False',
      message:
        kind === 'VirtualMCPServer'
          ? /^spec\.authServerConfig\.upstreamProviders\[0\]\.clientCertificateSecretRef: Secret remote-client, key tls\.key: is not the key/
          : /./,
    })
    t.strictSame(w.get('Deployment', deployment)['spec'], before)
    if (kind !== 'VirtualMCPServer')
      t.match(condition(w, 'MCPExternalAuthConfig', 'server', 'Valid'), {
        status: 'False',
        message: /upstreamProviders\[0\]\.clientCertificateSecretRef: .*is not the key of the certificate/,
      })
  })
}

const twice = { name: 'upstream-key', key: 'key.pem' }
t.test('a Secret that is also read at the start replaces the pods', async (t) => {
  const shared = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({ upstreamProviders, hmacSecretRefs: [twice] }),
  })
  const w = world(oidcConfig(), key('a'), clientCertificate, shared).ready()
  const hashOf = () =>
    (w.get('MCPExternalAuthConfig', 'server')['status'] as { readonly configHash: string }).configHash
  const before = hashOf()
  w.apply(key('b')).settle()
  t.not(hashOf(), before)
})

t.test('two upstreams have separate files', async (t) => {
  const second = { ...upstreamProviders[0], name: 'second' }
  const authServerConfig = embedded({ upstreamProviders: [...upstreamProviders, second] })
  const w = world(
    ...[oidcConfig(), key('a'), clientCertificate],
    virtual({ incomingAuth: { type: 'oidc', ...oidc }, authServerConfig }),
  ).ready()
  const names = templateOf(w, 'vmcp-door').spec.volumes.map((volume) => volume.name)
  t.same(
    names.filter((name) => name.startsWith('authserver-upstream-')),
    ['certificate-corp', 'certificate-second', 'client-key-corp', 'client-key-second'].map(
      (name) => `authserver-upstream-${name}`,
    ),
  )
})

t.test('the longest provider name results in valid volume names', async (t) => {
  const names = ['a', 'b'].map((last) => `${'p'.repeat(62)}${last}`)
  const providers = names.map((name) => ({ ...upstreamProviders[0], name }))
  const authServerConfig = embedded({ upstreamProviders: providers })
  const w = world(
    ...[oidcConfig(), key('a'), clientCertificate],
    virtual({ incomingAuth: { type: 'oidc', ...oidc }, authServerConfig }),
  ).ready()
  const volumes = templateOf(w, 'vmcp-door').spec.volumes.filter(({ name }) =>
    name.startsWith('authserver-up'),
  )
  t.equal(volumes.length, 4)
  for (const { name } of volumes) t.match(name, /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/)
})
