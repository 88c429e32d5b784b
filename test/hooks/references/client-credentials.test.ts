/** MCPExternalAuthConfig: the effect of rotating a client's Secret, and the kinds that support the strategy. */
import t from 'tap'
import { entry, resource, secret, server, virtual, world, remote } from '../resources.ts'

const own = (credential: object) =>
  resource('MCPExternalAuthConfig', 'own', {
    type: 'clientCredentials',
    clientCredentials: { issuer: 'https://login.example.com', clientId: 'door', ...credential },
  })
const tokens = (key: string) => ({ name: 'tokens', key })
const rotated = secret('tokens', { bearer: 'new', api: 'new', client: 'new' })

t.test('a rotated secret or key of clientCredentials does not replace pods', (t) => {
  for (const credential of [{ clientSecretRef: tokens('client') }, { privateKeyRef: tokens('api') }]) {
    const cluster = world(own(credential), remote('crm', { externalAuthConfigRef: { name: 'own' } })).ready()
    const templates = () => cluster.list('Deployment').map((deployment) => deployment['spec'])
    const before = structuredClone(templates())
    t.equal(before.length, 1)
    cluster.apply(rotated).settle()
    t.same(templates(), before)
  }
  t.end()
})

t.test('a rotated secret in a variable still replaces pods, and a rotated key does not', (t) => {
  const exchange = (more: object) =>
    resource('MCPExternalAuthConfig', 'own', {
      type: 'tokenExchange',
      tokenExchange: { tokenUrl: 'https://login.example.com/t', audience: 'crm', clientId: 'door', ...more },
    })
  const hashOf = (more: object): readonly unknown[] => {
    const cluster = world(exchange(more)).settle()
    const read = () =>
      (cluster.get('MCPExternalAuthConfig', 'own')['status'] as { configHash?: string }).configHash
    const before = read()
    cluster.apply(rotated).settle()
    return [before, read()]
  }
  const [first, second] = hashOf({ clientSecretRef: tokens('client') })
  t.not(first, second)
  const [third, fourth] = hashOf({ clientAuth: { method: 'privateKeyJwt', privateKeyRef: tokens('api') } })
  t.equal(third, fourth)
  t.end()
})

t.test('a Secret that one field rereads and another does not still replaces pods', async (t) => {
  const xaa = resource('MCPExternalAuthConfig', 'own', {
    type: 'xaa',
    xaa: {
      idpTokenUrl: 'https://login.example.com/t',
      idpClientId: 'door',
      idpClientSecretRef: tokens('client'),
      targetTokenUrl: 'https://target.example.com/t',
      targetAudience: 'https://target.example.com',
      targetClientId: 'door',
      targetClientAuth: { method: 'privateKeyJwt', privateKeyRef: tokens('client') },
    },
  })
  const cluster = world(xaa).settle()
  const status = () => cluster.get('MCPExternalAuthConfig', 'own')['status'] as { configHash?: string }
  const before = status().configHash
  t.match(before, /^[0-9a-f]{64}$/)
  cluster.apply(rotated).settle()
  t.not(status().configHash, before)
})

t.test('every kind that refers to the configuration mounts the secret', (t) => {
  const ref = { externalAuthConfigRef: { name: 'own' } }
  const explicit = { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'own' } }
  const legacy = { name: 'legacy', url: 'https://legacy.example.com/mcp', transport: 'streamable-http' }
  const inline = {
    outgoingAuth: { source: 'inline', backends: { legacy: explicit } },
    config: { backends: [legacy] },
  }
  const rows = [
    ['files', server('files', ref)],
    ['crm', remote('crm', ref)],
    ['door', entry('search', ref), virtual()],
    ['door', virtual(inline)],
  ] as const
  for (const [name, ...objects] of rows) {
    const cluster = world(own({ clientSecretRef: tokens('client') }), ...objects).ready()
    const pods = cluster.list('Deployment').map((deployment) => JSON.stringify(deployment))
    t.match(pods.join('\n'), /external-auth-client-secret-own/, name)
    const files = cluster.list('ConfigMap').map((map) => JSON.stringify(map))
    t.match(files.join('\n'), /clientSecretPath/, name)
    t.notMatch(files.join('\n'), /c-value/, name)
  }
  t.end()
})
