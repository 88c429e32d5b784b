/** Quotas of a virtual server in a cluster: errors, warnings, and changes without a restart. */
import t from 'tap'
import { validateResource } from '../../../../../hooks/index.ts'
import { entry, virtual, world } from '../../../../hooks/resources.ts'

const quota = { name: 'daily', per: 'server', window: 'day', limit: 10 }
const alone = 'config.quotas: each replica counts on its own'

function warningsOf(spec: object): readonly string[] {
  const { violations, warnings } = validateResource(virtual(spec))
  t.strictSame(violations, [])
  return warnings.filter((line) => /quotas|costs/.test(line))
}

t.test('quota counters in memory cause a warning when several replicas are possible', async (t) => {
  const config = { quotas: [quota] }
  t.match(warningsOf({ config, replicas: 2 })[0], alone)
  const redis = { provider: 'redis', address: 'redis:6379' }
  t.match(warningsOf({ config, replicas: 2, sessionStorage: { provider: 'memory' } })[0], alone)
  const autoscaling = { minReplicas: 1, maxReplicas: 3 }
  t.match(warningsOf({ config, autoscaling })[0], alone)
  t.strictSame(warningsOf({ config, replicas: 1 }), [])
  t.strictSame(warningsOf({ config }), [])
  t.strictSame(warningsOf({ config, replicas: 2, sessionStorage: redis }), [])
  t.strictSame(warningsOf({ config: {}, replicas: 2 }), [])
})

t.test('costs that no quota uses cause a warning', async (t) => {
  t.match(warningsOf({ config: { quotas: [quota], costs: { web: 1 } } }), [
    /config\.costs has no effect, because no quota uses the unit cost/,
  ])
  t.match(warningsOf({ config: { costs: { web: 1 } } }), [
    /config\.costs has no effect, because no quota uses the unit cost/,
  ])
  t.strictSame(warningsOf({ config: { quotas: [{ ...quota, unit: 'cost' }], costs: { web: 1 } } }), [])
})

t.test('the status reports names of backends that do not exist', async (t) => {
  const config = {
    quotas: [
      { ...quota, match: { backend: 'serch' } },
      { ...quota, name: 'b', match: { backend: 'search' } },
    ],
    costs: { 'serch/find': 1, search: 2 },
  }
  const w = world(entry('search'), virtual({ config })).settle()
  const status = JSON.stringify(w.get('VirtualMCPServer', 'door')['status'])
  t.match(status, 'spec.config.quotas[0].match.backend')
  t.match(status, /spec\.config\.costs.*serch/)
  t.notMatch(status, 'spec.config.quotas[1]')
})

t.test('a changed quota changes the file and rolls no pods', async (t) => {
  const w = world(entry('search'), virtual({ config: { quotas: [quota] } })).settle()
  const pods = () => JSON.stringify(w.get('Deployment', 'vmcp-door')['spec'])
  const before = pods()
  w.apply(virtual({ config: { quotas: [{ ...quota, limit: 11 }], costs: { search: 5 } } })).settle()
  t.equal(pods(), before)
  t.match(JSON.stringify(w.list('ConfigMap')), /limit: 11/)
})
