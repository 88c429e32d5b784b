/** `spec.tls`: the server certificate, reports of a missing or broken Secret, and connections to members. */
import t from 'tap'
import { parse } from 'yaml'
import { hookSettings, makeHooks, validateResource } from '../../../../hooks/index.ts'
import { makeAuthority, secretOf } from '../../../helpers/certificates.ts'
import {
  embedded,
  group,
  oidc,
  oidcConfig,
  remote,
  resource,
  secret,
  server,
  virtual,
  world,
} from '../../../hooks/resources.ts'
import { servingCertificate } from '../../../hooks/serving-certificate.ts'
import { type Condition, configMap, type Stored, World } from '../../../hooks/world.ts'

const tls = { tls: { secretName: 'inside-tls' } }
const inside = secret('inside-tls', servingCertificate)
const kinds = [
  ['VirtualMCPServer', 'door', 'vmcp-door', virtual, '4483/mcp'],
  ['MCPRemoteProxy', 'crm', 'mcp-crm-remote-proxy', (spec: object) => remote('crm', spec), '8080/mcp'],
  ['MCPServer', 'files', 'mcp-files-proxy', (spec: object) => server('files', spec), '8080/mcp'],
] as const

const statusOf = (w: World, kind: string, name: string) =>
  w.get(kind, name)['status'] as { url: string; phase: string; conditions: Condition[] }
const condition = (w: World, kind: string, name: string, type: string) =>
  statusOf(w, kind, name).conditions.find((one) => one.type === type)
interface Template {
  template: {
    metadata: { annotations: Record<string, string> }
    spec: { containers: Record<string, unknown>[]; volumes: Record<string, unknown>[] }
  }
}
const podsOf = (w: World, child: string) => (w.get('Deployment', child)['spec'] as Template).template
const containerOf = (w: World, child: string) => podsOf(w, child).spec.containers[0] ?? {}
const problemsOf = (object: Stored) =>
  validateResource(object).violations.map(({ path, message }) => `${path}: ${message}`)
const fileOf = (w: World) =>
  parse((w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>)['config.yaml'] ?? '')

for (const [kind, name, child, make, path] of kinds) {
  const host = `${child}.team.svc.cluster.local`
  t.test(`${kind}: HTTPS on the same port, for clients, probes and Prometheus`, async (t) => {
    const w = world(inside, make(tls)).ready()
    const { args, startupProbe, livenessProbe, readinessProbe, volumeMounts } = containerOf(w, child)
    t.ok((args as string[]).includes('--tls-cert-file=/etc/gatehouse/tls/tls.crt'))
    t.ok((args as string[]).includes('--tls-key-file=/etc/gatehouse/tls/tls.key'))
    for (const probe of [startupProbe, livenessProbe, readinessProbe])
      t.match(probe, { httpGet: { port: 'http', scheme: 'HTTPS' } })
    const mount = (volumeMounts as { name: string; mountPath: string; subPath?: string }[]).find(
      ({ mountPath }) => mountPath === '/etc/gatehouse/tls',
    )
    t.match(mount, { name: 'serving-tls', readOnly: true })
    t.equal(mount?.subPath, undefined, 'the kubelet would not update a subPath')
    const volume = podsOf(w, child).spec.volumes.find((one) => one['name'] === 'serving-tls')
    t.match(volume, { secret: { secretName: 'inside-tls', optional: undefined } })
    t.match(podsOf(w, child).metadata.annotations, { 'prometheus.io/scheme': 'https' })
    t.match(w.get('Service', child)['spec'], { ports: [{ name: 'http', appProtocol: 'https' }] })
    t.equal(statusOf(w, kind, name).url, `https://${host}:${path}`)
    t.match(condition(w, kind, name, 'TLSReady'), { status: 'True', reason: 'CertificateServed' })

    const before = JSON.stringify(w.get('Deployment', child)['spec'])
    const authority = await makeAuthority()
    const renewed = await authority.leaf({ names: [host] })
    w.apply(secret('inside-tls', secretOf(renewed, authority.ca))).settle()
    t.equal(JSON.stringify(w.get('Deployment', child)['spec']), before, 'a new certificate rolls nothing')

    w.apply(make({})).ready()
    const plain = world(make({})).ready()
    t.strictSame(podsOf(w, child), podsOf(plain, child), 'disabling TLS removes all of it')
    t.equal(statusOf(w, kind, name).url, `http://${host}:${path}`)
    t.equal(condition(w, kind, name, 'TLSReady'), undefined)
  })

  t.test(`${kind}: a missing or broken Secret is reported, and the running objects stay`, async (t) => {
    const w = world(make({})).ready()
    const before = JSON.stringify(podsOf(w, child))
    w.apply(make(tls)).settle()
    t.match(condition(w, kind, name, 'TLSReady'), {
      status: 'False',
      reason: 'TLSSecretNotFound',
      message:
        /spec\.tls\.secretName: .*Secret inside-tls, key tls\.crt.*Create it with kubectl create secret tls/,
    })
    t.equal(condition(w, kind, name, 'Ready')?.status, 'False')
    t.equal(JSON.stringify(podsOf(w, child)), before)
    t.equal(statusOf(w, kind, name).url, `http://${host}:${path}`, 'the running pods still use http')

    w.apply(secret('inside-tls', { 'tls.crt': servingCertificate['tls.crt'] })).settle()
    t.match(condition(w, kind, name, 'TLSReady'), { reason: 'TLSSecretNotFound', message: /key tls\.key/ })
    w.apply(secret('inside-tls', { ...servingCertificate, 'tls.crt': servingCertificate['ca.crt'] })).settle()
    t.match(condition(w, kind, name, 'TLSReady'), {
      reason: 'TLSSecretInvalid',
      message: /Secret inside-tls: tls\.key: is not the key of the certificate in tls\.crt/,
    })
    t.notMatch(JSON.stringify(w.get(kind, name)), 'BEGIN', 'no contents of the Secret')
    w.apply(inside).ready()
    t.equal(statusOf(w, kind, name).url, `https://${host}:${path}`)
    t.not(JSON.stringify(podsOf(w, child)), before)

    w.remove('Secret', 'inside-tls').settle()
    t.equal(statusOf(w, kind, name).url, `https://${host}:${path}`, 'the running pods keep their certificate')
    t.ok((containerOf(w, child)['args'] as string[]).some((arg) => arg.startsWith('--tls-cert-file')))
  })

  t.test(`${kind}: a certificate that clients would not trust is reported`, async (t) => {
    const authority = await makeAuthority()
    const w = world(secret('inside-tls', secretOf(await authority.leaf())), make(tls)).ready()
    t.match(condition(w, kind, name, 'TLSReady'), {
      status: 'True',
      message: new RegExp(`does not cover ${host}.*the Secret has no ca\\.crt`),
    })
  })

  t.test(`${kind}: incomplete or unknown settings are rejected`, async (t) => {
    for (const wrong of [{}, { secretName: '' }, { secretName: 'A_b' }, { secretName: 'a', certFile: '/x' }])
      t.match(problemsOf(make({ tls: wrong })), [/^spec\.tls/], JSON.stringify(wrong))
    t.same(problemsOf(make(tls)), [])
  })

  t.test(
    `${kind}: gatehouse dev does not check names, because it uses addresses that no certificate contains`,
    async (t) => {
      const settings = hookSettings({ runtimeImage: 'g:1', version: '1', allowLoopback: true })
      const w = new World(settings).apply(make(tls)).settle()
      t.equal(condition(w, kind, name, 'TLSReady'), undefined)
    },
  )
}

const clientAuthority = { configMapRef: { name: 'client-ca', key: 'root.pem' } }
const mutual = { tls: { secretName: 'inside-tls', clientCABundleRef: clientAuthority } }
const authorityMap = (text: string) => configMap('client-ca', { 'root.pem': text })

for (const [kind, name, child, make] of kinds) {
  t.test(`${kind}: with an authority, the server requests client certificates`, async (t) => {
    const w = world(inside, authorityMap(servingCertificate['ca.crt'] ?? ''), make(mutual)).ready()
    const { args, volumeMounts } = containerOf(w, child)
    t.ok((args as string[]).includes('--tls-client-ca-file=/etc/gatehouse/tls-client-ca/root.pem'))
    const mount = (volumeMounts as { mountPath: string; subPath?: string }[]).find(
      ({ mountPath }) => mountPath === '/etc/gatehouse/tls-client-ca',
    )
    t.match(mount, { name: 'serving-client-ca', readOnly: true })
    t.equal(mount?.subPath, undefined, 'the kubelet would not update a subPath')
    const before = JSON.stringify(w.get('Deployment', child)['spec'])
    w.apply(authorityMap((await makeAuthority()).ca)).settle()
    t.equal(JSON.stringify(w.get('Deployment', child)['spec']), before, 'another authority rolls nothing')
  })

  t.test(`${kind}: a missing or invalid authority keeps the running pods`, async (t) => {
    const w = world(inside, make(tls)).ready()
    const before = JSON.stringify(podsOf(w, child))
    w.apply(make(mutual)).settle()
    const messages = [
      [undefined, 'TLSClientCANotFound', 'ConfigMap client-ca does not exist'],
      [configMap('client-ca', { other: 'x' }), 'TLSClientCANotFound', 'has no key root.pem'],
      [authorityMap('x'), 'TLSClientCAInvalid', 'ConfigMap client-ca contains no CA certificate'],
      [
        authorityMap(servingCertificate['tls.crt'] ?? ''),
        'TLSClientCAInvalid',
        'ConfigMap client-ca contains no CA certificate',
      ],
    ] as const
    for (const [map, reason, message] of messages) {
      if (map) w.apply(map).settle()
      const found = condition(w, kind, name, 'TLSReady')
      t.match(found, { status: 'False', reason })
      t.ok(
        found?.message.includes(`spec.tls.clientCABundleRef: ${message}`) || found?.message.includes(message),
      )
      t.equal(JSON.stringify(podsOf(w, child)), before)
    }
    w.apply(authorityMap(servingCertificate['ca.crt'] ?? '')).ready()
    t.match(condition(w, kind, name, 'TLSReady'), { status: 'True' })
  })

  t.test(`${kind}: an optional authority is rejected`, async (t) => {
    const optional = { configMapRef: { name: 'client-ca', optional: true } }
    t.same(problemsOf(make({ tls: { secretName: 'inside-tls', clientCABundleRef: optional } })), [
      'spec.tls.clientCABundleRef.configMapRef.optional: must not be optional',
    ])
  })
}

const binding = {
  upstreamProviders: [],
  clients: [
    {
      clientId: 'agent',
      jwksUri: 'https://ci.example.com/keys',
      scopes: ['tools'],
      tlsClientCertificateBoundAccessTokens: true,
    },
  ],
  tlsClientCertificateBoundAccessTokens: true,
}
const oidcRef = { name: 'login', audience: 'https://x.example.com', resourceUrl: 'https://x.example.com' }

t.test('tokens can be bound to certificates only by a server that requests them', async (t) => {
  const door = (more: object) =>
    virtual({
      incomingAuth: { type: 'oidc', oidcConfigRef: oidcRef },
      authServerConfig: embedded(binding),
      ...more,
    })
  const missing = 'is required, because authServerConfig binds tokens to certificates'
  t.same(problemsOf(door({})), [`spec.tls.clientCABundleRef: ${missing}`])
  t.same(problemsOf(door(tls)), [`spec.tls.clientCABundleRef: ${missing}`])
  t.same(problemsOf(door(mutual)), [])
  const shared = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded(binding),
  })
  const files = server('files', {
    ...tls,
    oidcConfigRef: oidcRef,
    authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
  })
  const w = world(oidcConfig(), inside, shared, files).settle()
  t.match(condition(w, 'MCPServer', 'files', 'AuthServerRefValidated'), {
    status: 'False',
    message:
      'spec.tls.clientCABundleRef is required, because the embedded authorization server binds tokens to certificates',
  })
})

t.test('gatehouse dev binds no tokens to certificates, because it serves plain HTTP', async (t) => {
  const settings = hookSettings({ runtimeImage: 'g:1', version: '1', allowLoopback: true })
  const door = virtual({
    ...mutual,
    incomingAuth: { type: 'oidc', oidcConfigRef: oidcRef },
    authServerConfig: embedded({
      ...binding,
      signingKeySecretRefs: undefined,
      hmacSecretRefs: undefined,
    }),
  })
  const w = new World(settings).apply(group, oidcConfig(), door).settle()
  const data = w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>
  t.ok(data['authserver-config.yaml'])
  t.notMatch(data['authserver-config.yaml'], 'tlsClientCertificateBoundAccessTokens')
})

t.test('a virtual server connects to members over https, with the authority of their Secret', async (t) => {
  const w = world(inside, server('files', tls), remote('crm', tls), server('notes'), virtual()).ready()
  const backends: { name: string }[] = fileOf(w).backends
  t.match(backends, [
    { name: 'crm', url: 'https://mcp-crm-remote-proxy.team.svc.cluster.local:8080/mcp' },
    {
      name: 'files',
      url: 'https://mcp-files-proxy.team.svc.cluster.local:8080/mcp',
      caBundlePath: '/etc/gatehouse/ca-bundles/files/ca.crt',
    },
    { name: 'notes', url: 'http://mcp-notes-proxy.team.svc.cluster.local:8080/mcp', caBundlePath: undefined },
  ])
  const volumes = podsOf(w, 'vmcp-door').spec.volumes.filter((one) => String(one['name']).startsWith('ca-'))
  const items = [{ key: 'ca.crt', path: 'ca.crt' }]
  t.match(
    volumes,
    ['crm', 'files'].map((name) => ({
      name: `ca-bundle-${name}`,
      secret: { secretName: 'inside-tls', optional: true, items },
    })),
    'the private key is not mounted, and a missing member Secret does not prevent pods from starting',
  )
  const secrets = makeHooks(hookSettings({ runtimeImage: 'g:1', version: '1' }))
    .byKind('VirtualMCPServer')
    ?.customize(w.request('VirtualMCPServer', 'door'))
  t.notMatch(JSON.stringify(secrets), 'inside-tls', 'the Secret of a member is not read here')
})

t.test('two servers may share a Secret', async (t) => {
  const other = { ...virtual(tls), metadata: { ...virtual().metadata, name: 'side' } }
  const w = world(inside, virtual(tls), other).ready()
  for (const name of ['door', 'side'])
    t.equal(condition(w, 'VirtualMCPServer', name, 'TLSReady')?.status, 'True')
})

t.test('tokens are for the https address, and a public address stays the same', async (t) => {
  const incomingAuth = { ...oidc, oidcConfigRef: { ...oidc.oidcConfigRef, resourceUrl: undefined } }
  const w = world(inside, oidcConfig(), virtual({ incomingAuth, ...tls })).ready()
  t.equal(fileOf(w).incomingAuth.oidc.resource, 'https://vmcp-door.team.svc.cluster.local:4483/mcp')
  const exposure = { hostname: 'tools.example.com', ingress: {} }
  w.apply(virtual({ incomingAuth, exposure, ...tls })).ready()
  t.equal(fileOf(w).incomingAuth.oidc.resource, 'https://tools.example.com/mcp')
  t.match(w.get('Ingress', 'vmcp-door').metadata['annotations'], {
    'nginx.ingress.kubernetes.io/backend-protocol': 'HTTPS',
  })
})

t.test('a Gateway requires a BackendTLSPolicy to reach the Service over TLS', async (t) => {
  const exposure = { hostname: 'tools.example.com', gateway: { name: 'public' } }
  for (const [, , child, make] of kinds) {
    const warnings = (spec: object) => validateResource(make(spec)).warnings
    t.match(warnings({ exposure, ...tls }), [new RegExp(`BackendTLSPolicy.*Service ${child}`)])
    t.same(warnings({ exposure: { hostname: exposure.hostname, ingress: {} }, ...tls }), [])
    t.same(warnings({ exposure }), [])
  }
})
