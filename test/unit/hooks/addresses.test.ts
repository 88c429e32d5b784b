import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { addressFailure } from '../../../hooks/references/addresses.ts'

const never = [
  'http://localhost/mcp',
  'http://localhost./mcp',
  'http://api.localhost',
  'http://127.0.0.1',
  'http://2130706433',
  'http://0177.0.0.1',
  'http://0.0.0.0:8080',
  'http://169.254.169.254/latest',
  'http://[fd00:ec2::254]/latest',
  'http://100.100.100.200/latest',
  'http://239.1.2.3',
  'http://255.255.255.255',
  'http://[ff02::1]',
  'http://[::1]',
  'http://[::]',
  'http://[::ffff:127.0.0.1]',
  'http://[fe80::1]',
  'https://kubernetes.default.svc',
  'https://kubernetes.default.svc.cluster.local',
  'https://kubernetes.default',
  'http://metadata.google.internal/computeMetadata',
  'ftp://example.com',
  'https://user:secret@example.com',
  'not a url',
]
const inside = [
  'http://10.1.2.3',
  'http://172.16.0.1',
  'http://192.168.1.1',
  'http://100.64.0.1',
  'http://[fd00::1]',
  'http://[::ffff:10.0.0.1]',
  'http://crm.team.svc.cluster.local',
  'http://crm.team.svc',
]
const outside = [
  'https://example.com/mcp',
  'https://8.8.8.8',
  'https://svc.example.com',
  'https://localhost.example.com',
]

t.test('addressViolation: loopback, metadata and the API server are never allowed', async (t) => {
  for (const url of never) {
    t.type(addressFailure(url, { allowPrivateEndpoint: false }), 'string', url)
    t.type(
      addressFailure(url, { allowPrivateEndpoint: true }),
      'string',
      `${url} even with allowPrivateEndpoint`,
    )
  }
})

t.test('addressViolation: private addresses require allowPrivateEndpoint', async (t) => {
  for (const url of inside) {
    t.match(addressFailure(url, { allowPrivateEndpoint: false }), /allowPrivateEndpoint/, url)
    t.equal(addressFailure(url, { allowPrivateEndpoint: true }), undefined, url)
  }
})

t.test('addressViolation: public addresses are allowed', async (t) => {
  for (const url of outside) t.equal(addressFailure(url, { allowPrivateEndpoint: false }), undefined, url)
})

t.test('addressViolation: only local mode allows loopback addresses', async (t) => {
  for (const url of [
    'http://localhost:8000/mcp',
    'http://127.0.0.1/',
    'http://127.1.2.3',
    'http://[::1]:8000',
  ]) {
    t.equal(addressFailure(url, { allowPrivateEndpoint: false, allowLoopback: true }), undefined, url)
  }
  for (const url of [
    'http://169.254.169.254',
    'http://0.0.0.0',
    'http://metadata.google.internal',
    'http://a.localhost.svc',
  ]) {
    t.type(
      addressFailure(url, { allowPrivateEndpoint: true, allowLoopback: true }) ??
        addressFailure(url, { allowPrivateEndpoint: false, allowLoopback: true }),
      'string',
      url,
    )
  }
  const entry = {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPServerEntry',
    metadata: { name: 'a' },
    spec: { remoteUrl: 'http://localhost:8000/mcp', transport: 'streamable-http', groupRef: { name: 'g' } },
  }
  t.match(
    validateResource(entry).violations,
    [{ path: 'spec.remoteUrl' }],
    'the webhook and gatehouse validate reject it',
  )
  t.strictSame(
    validateResource(entry, { settings: { enableObo: false, allowLoopback: true } }).violations,
    [],
  )
})
