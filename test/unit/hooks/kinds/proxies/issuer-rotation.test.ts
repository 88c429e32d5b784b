/** oidcConfigRefs: rotating an issuer's client secret, which reaches the pods in a variable. */
import t from 'tap'
import { remote, resource, secret, server, virtual, world } from '../../../../hooks/resources.ts'

const issuer = (name: string, more: object = {}) =>
  resource('MCPOIDCConfig', name, {
    type: 'inline',
    inline: { issuer: `https://${name}.example.com`, ...more },
  })
const client = { clientId: 'door', clientSecretRef: { name: 'oidc', key: 's' } }
const oidcConfigRefs = ['first', 'second'].map((name) => ({ name, audience: 'door' }))

t.test('a rotated client secret of any issuer replaces the pods', async (t) => {
  const consumers = [
    server('files', { oidcConfigRefs }),
    remote('crm', { oidcConfigRefs }),
    virtual({ incomingAuth: { type: 'oidc', oidcConfigRefs } }),
  ]
  for (const consumer of consumers) {
    for (const owner of ['first', 'second']) {
      const issuers = ['first', 'second'].map((name) => issuer(name, name === owner ? client : {}))
      const cluster = world(...issuers, secret('oidc', { s: '1' }), consumer).ready()
      const templates = () => cluster.list('Deployment').map((deployment) => deployment['spec'])
      const before = structuredClone(templates())
      t.equal(before.length, 1)
      t.match(JSON.stringify(before), /OIDC_CLIENT_SECRET/)
      cluster.apply(secret('oidc', { s: '2' })).ready()
      t.notSame(templates(), before, `${consumer.kind}, issuer ${owner}`)
    }
  }
})
