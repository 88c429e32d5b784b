/** The rule for addresses, applied to text at admission and to the address that is dialed. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { type AddressPolicy, addressViolation, isRefusedAddress } from '../../../schemas/index.ts'

const policies: readonly AddressPolicy[] = ['any', 'private', 'public']

/** Rejected by every policy. */
const never = [
  'http://0.0.0.0:8080',
  'http://169.254.169.254/latest',
  'http://169.254.0.1',
  'http://2852039166/latest',
  'http://[fd00:ec2::254]/latest',
  'http://100.100.100.200/latest',
  'http://168.63.129.16/machine',
  'http://192.0.0.192/latest',
  'http://[fd00:ec2::23]/v1/credentials',
  'http://[fd20:ce::254]/computeMetadata',
  'http://[64:ff9b:1::a9fe:a9fe]',
  'http://[::ffff:0:169.254.169.254]',
  'http://239.1.2.3',
  'http://255.255.255.255',
  'http://[ff02::1]',
  'http://[::]',
  'http://[fe80::1]',
  'http://[::ffff:169.254.169.254]',
  'http://[64:ff9b::a9fe:a9fe]',
  'https://kubernetes.default.svc',
  'https://kubernetes.default.svc.cluster.local',
  'https://kubernetes.default',
  'http://metadata.google.internal/computeMetadata',
  'http://METADATA.google.internal./computeMetadata',
  'ftp://example.com',
  'https://user:secret@example.com',
  'not a url',
]
/** Rejected unless loopback is allowed. */
const loopback = [
  'http://localhost/mcp',
  'http://localhost./mcp',
  'http://api.localhost',
  'http://127.0.0.1',
  'http://2130706433',
  'http://0177.0.0.1',
  'http://[::1]',
  'http://[::ffff:127.0.0.1]',
]
/** Rejected unless private networks are allowed. */
const inside = [
  'http://10.1.2.3',
  'http://172.16.0.1',
  'http://192.168.1.1',
  'http://100.64.0.1',
  'http://[fd00::1]',
  'http://[::ffff:10.0.0.1]',
  'http://[64:ff9b:1::10.0.0.1]',
  'http://crm.team.svc.cluster.local',
  'http://crm.team.svc',
]
const outside = [
  'https://example.com/mcp',
  'https://8.8.8.8',
  'https://svc.example.com',
  'https://localhost.example.com',
]

t.test('text: link-local, metadata and the API server are rejected by every policy', async (t) => {
  for (const policy of policies)
    for (const url of never) t.type(addressViolation(url, policy), 'string', `${policy}: ${url}`)
})

t.test('text: loopback is rejected unless every address is allowed', async (t) => {
  for (const url of loopback) {
    t.type(addressViolation(url, 'public'), 'string', url)
    t.type(addressViolation(url, 'private'), 'string', url)
    t.equal(addressViolation(url, 'any'), undefined, url)
  }
})

t.test('text: private addresses require allowPrivateEndpoint', async (t) => {
  for (const url of inside) {
    t.match(addressViolation(url, 'public'), /allowPrivateEndpoint/, url)
    t.equal(addressViolation(url, 'private'), undefined, url)
    t.equal(addressViolation(url, 'any'), undefined, url)
  }
})

t.test('text: public addresses are allowed', async (t) => {
  for (const policy of policies)
    for (const url of outside) t.equal(addressViolation(url, policy), undefined, url)
})

t.test('dialed: an address that the text rule rejects as a literal is rejected when dialed', async (t) => {
  for (const url of [...never, ...loopback, ...inside, ...outside]) {
    if (!URL.canParse(url)) continue
    const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
    if (!/^[\d.]+$|:/.test(host)) continue
    for (const policy of policies) {
      if (addressViolation(url, policy) !== undefined)
        t.ok(isRefusedAddress(host, policy), `${policy}: ${host}`)
      else t.notOk(isRefusedAddress(host, policy), `${policy}: ${host}`)
    }
  }
  t.ok(isRefusedAddress('fe80::1%eth0', 'any'), 'with a zone')
  t.ok(isRefusedAddress('example.com', 'any'), 'an invalid address')
  for (const address of ['192.0.2.1', '198.18.0.1', '2001:db8::1', '2002:a00:1::'])
    t.ok(isRefusedAddress(address, 'public'), `${address} leads nowhere on the public network`)
})

t.test('admission: static backends and the embedding service follow the same rule', async (t) => {
  const server = (config: object) =>
    validateResource({
      apiVersion: 'gatehouse.dev/v1beta1',
      kind: 'VirtualMCPServer',
      metadata: { name: 'v', namespace: 'default' },
      spec: {
        groupRef: { name: 'g' },
        incomingAuth: { type: 'anonymous' },
        outgoingAuth: { source: 'inline' },
        config,
      },
    }).violations
  const backend = (url: string) => server({ backends: [{ name: 'b', url, transport: 'streamable-http' }] })
  const embedding = (embeddingService: string) => server({ optimizer: { embeddingService } })
  for (const url of never.filter((url) => /^https?:/.test(url))) {
    t.match(backend(url), [{ path: 'spec.config.backends[0].url' }], url)
    t.match(embedding(url), [{ path: 'spec.config.optimizer.embeddingService' }], url)
  }
  for (const url of [...loopback, ...inside, ...outside]) {
    t.strictSame(backend(url), [], url)
    t.strictSame(embedding(url), [], url)
  }
})
