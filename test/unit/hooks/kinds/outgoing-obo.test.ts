/** On-behalf-of: rejected without a handler, rendered with one. */
import t from 'tap'
import { hookSettings } from '../../../../hooks/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { auth, entry, group, remote, resource, secrets, virtual, world } from '../../../hooks/resources.ts'
import { type Stored, World } from '../../../hooks/world.ts'
import { conditionOf, configOf, own, ref } from './outgoing.ts'

t.test('obo: without a handler, every kind reports EnterpriseRequired', async (t) => {
  proves('2.obo.rule.enterprise', '2.state.Valid', '2.error.obo.enterprise')
  const w = world(
    auth.obo,
    entry('e', own('obo')),
    remote('crm', own('obo')),
    virtual({ outgoingAuth: { backends: { e: ref('obo') } } }),
  ).ready()
  t.match(conditionOf(w, 'MCPExternalAuthConfig', 'obo', 'Valid'), {
    status: 'False',
    reason: 'EnterpriseRequired',
  })
  t.match(conditionOf(w, 'VirtualMCPServer', 'door', 'BackendAuthConfig-e'), { reason: 'EnterpriseRequired' })
  t.match(conditionOf(w, 'MCPRemoteProxy', 'crm', 'ExternalAuthConfigValidated'), {
    reason: 'EnterpriseRequired',
  })
})

const withHandler = (...objects: Stored[]) =>
  new World(hookSettings({ runtimeImage: 'i', version: '1', enableObo: true })).apply(
    group,
    ...secrets,
    ...objects,
  )

t.test(
  'obo: with a handler, reconciliation checks its rules, and the runtime gets the secret as a variable name',
  async (t) => {
    proves(
      '2.obo.rule.target',
      '2.obo.rule.client',
      '2.obo.rule.tenant',
      '2.error.obo.incomplete',
      '2.obo.authority.endpoint',
      '2.obo.clientId',
      '2.obo.clientSecretRef',
    )
    const full = {
      tenantId: 'corp.example.com',
      clientId: 'door',
      clientSecretRef: { name: 'tokens', key: 'client' },
      audience: 'api',
    }
    const obo = (config: object) => resource('MCPExternalAuthConfig', 'obo', { type: 'obo', obo: config })
    const incomplete: [object, RegExp][] = [
      [{ ...full, audience: undefined }, /audience and scopes/],
      [{ ...full, clientId: undefined }, /clientId/],
      [{ ...full, clientSecretRef: undefined }, /clientSecretRef/],
      [{ ...full, tenantId: undefined }, /tenantId/],
      [{ ...full, cacheSkew: '-5s' }, /cacheSkew/],
    ]
    for (const [config, why] of incomplete) {
      const w = withHandler(obo(config)).settle()
      t.match(conditionOf(w, 'MCPExternalAuthConfig', 'obo', 'Valid'), {
        status: 'False',
        reason: 'InvalidConfig',
        message: why,
      })
    }
    const w = withHandler(
      obo({ ...full, authority: 'https://login.example.us/base', cacheSkew: '1m30s' }),
      entry('e', own('obo')),
      virtual(),
    ).ready()
    t.strictSame(configOf(w).outgoingAuth.backends?.['e'], {
      type: 'obo',
      obo: {
        tokenUrl: 'https://login.example.us/base/corp.example.com/oauth2/v2.0/token',
        clientId: 'door',
        clientSecretEnv: 'GATEHOUSE_OBO_CLIENT_SECRET_OBO',
        audience: 'api',
        cacheSkewSeconds: 90,
      },
    })
  },
)
