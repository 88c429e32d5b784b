/** Disruption budget, spread, graceful shutdown and autoscaler: created when they apply, removed when they do not. */
import t from 'tap'
import { validateResource } from '../../../../hooks/index.ts'
import { redis, remote, server, virtual, world } from '../../../hooks/resources.ts'
import type { Condition, Stored, World } from '../../../hooks/world.ts'

interface Pods {
  readonly replicas?: number
  readonly template: {
    readonly spec: {
      readonly priorityClassName?: string
      readonly terminationGracePeriodSeconds: number
      readonly topologySpreadConstraints: readonly { readonly whenUnsatisfiable: string }[]
      readonly containers: readonly { readonly name: string; readonly lifecycle?: object }[]
    }
  }
}

const podsOf = (w: World, kind: string, name: string) => w.get(kind, name)['spec'] as Pods
const autoscaling = { minReplicas: 2, maxReplicas: 6 }
const problemsOf = (object: Stored) =>
  validateResource(object).violations.map(({ path, message }) => `${path}: ${message}`)

t.test('a disruption budget is created with the second pod and removed with it', async (t) => {
  const w = world(virtual({ replicas: 1, ...redis })).settle()
  t.same(w.list('PodDisruptionBudget'), [])
  w.apply(virtual({ replicas: 2, ...redis })).settle()
  t.match(w.get('PodDisruptionBudget', 'vmcp-door')['spec'], {
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
  })
  w.apply(virtual({ replicas: 1, ...redis })).settle()
  t.same(w.list('PodDisruptionBudget'), [])
})

t.test('a replica count set by another controller creates a budget, too', async (t) => {
  const w = world(virtual(redis)).settle()
  ;(podsOf(w, 'Deployment', 'vmcp-door') as { replicas?: number }).replicas = 4
  w.settle()
  t.equal(w.list('PodDisruptionBudget').length, 1)
  t.equal(podsOf(w, 'Deployment', 'vmcp-door').replicas, 4)
})

t.test('the server of an MCPServer has its own budget', async (t) => {
  const w = world(server('files', { backendReplicas: 2, ...redis })).settle()
  t.strictSame(
    w.list('PodDisruptionBudget').map(({ metadata }) => metadata.name),
    ['mcp-files-server'],
  )
})

t.test('a changed replica count replaces no pods', async (t) => {
  const templateOf = (spec: object) =>
    podsOf(world(virtual({ ...redis, ...spec })).settle(), 'Deployment', 'vmcp-door').template
  t.strictSame(templateOf({ replicas: 1 }), templateOf({ replicas: 5 }))
  t.strictSame(templateOf({ replicas: 1 }), templateOf({ autoscaling }))
})

t.test(
  'the replica count starts at minReplicas and then follows the autoscaler; without an autoscaler it stays',
  async (t) => {
    const w = world(virtual({ autoscaling, ...redis })).settle()
    t.equal(podsOf(w, 'Deployment', 'vmcp-door').replicas, 2)
    t.match(w.get('HorizontalPodAutoscaler', 'vmcp-door')['spec'], {
      scaleTargetRef: { kind: 'Deployment', name: 'vmcp-door' },
      minReplicas: 2,
      maxReplicas: 6,
      metrics: [{ containerResource: { container: 'vmcp', target: { averageUtilization: 80 } } }],
    })
    ;(podsOf(w, 'Deployment', 'vmcp-door') as { replicas?: number }).replicas = 5
    w.settle()
    t.equal(podsOf(w, 'Deployment', 'vmcp-door').replicas, 5, 'the hook does not override the autoscaler')
    w.apply(virtual({ autoscaling: { minReplicas: 3, maxReplicas: 9 }, ...redis })).settle()
    t.equal(podsOf(w, 'Deployment', 'vmcp-door').replicas, 5)
    t.match(w.get('HorizontalPodAutoscaler', 'vmcp-door')['spec'], { minReplicas: 3, maxReplicas: 9 })
    w.apply(virtual(redis)).settle()
    t.same(w.list('HorizontalPodAutoscaler'), [])
    t.equal(podsOf(w, 'Deployment', 'vmcp-door').replicas, 5)
    t.equal(w.list('PodDisruptionBudget').length, 1)
  },
)

t.test('CPU is ignored when sessions are the only target', async (t) => {
  const scaling = { ...autoscaling, targetSessions: 100 }
  const spec = world(virtual({ autoscaling: scaling, ...redis }))
    .settle()
    .get('HorizontalPodAutoscaler', 'vmcp-door')['spec'] as { metrics: readonly object[] }
  t.match(spec.metrics, [{ type: 'Pods', pods: { target: { averageValue: '100' } } }])
  t.equal(spec.metrics.length, 1)
})

t.test('the message of a failing autoscaler is reported unchanged', async (t) => {
  const w = world(virtual({ autoscaling, ...redis })).settle()
  const active = () =>
    (w.get('VirtualMCPServer', 'door')['status'] as { conditions: Condition[] }).conditions.find(
      ({ type }) => type === 'AutoscalingActive',
    )
  t.equal(active(), undefined, 'the autoscaler has not reported yet')
  const verdict = (status: string) => ({
    conditions: [{ type: 'ScalingActive', status, reason: 'FailedGetResourceMetric', message: 'no metrics' }],
  })
  w.setStatus('HorizontalPodAutoscaler', 'vmcp-door', verdict('False')).settle()
  t.match(active(), { status: 'False', reason: 'FailedGetResourceMetric', message: 'no metrics' })
  w.setStatus('HorizontalPodAutoscaler', 'vmcp-door', verdict('True')).settle()
  t.match(active(), { status: 'True' })
})

t.test('servers that cannot be scaled are rejected, each with its reason', async (t) => {
  const cases: readonly [Stored, RegExp][] = [
    [virtual({ autoscaling: { minReplicas: 5, maxReplicas: 2 } }), /autoscaling\.minReplicas: .*maxReplicas/],
    [
      virtual({ autoscaling: { minReplicas: 0, maxReplicas: 2 } }),
      /minReplicas: expected a whole number from 1/,
    ],
    [virtual({ autoscaling: { maxReplicas: 2 } }), /minReplicas: is required/],
    [virtual({ autoscaling, replicas: 3 }), /spec\.replicas: .*mutually exclusive/],
    [virtual({ autoscaling, sessionStorage: { provider: 'memory' } }), /provider: .*needs provider redis/],
    [
      server('files', { autoscaling, transport: 'stdio' }),
      /spec\.autoscaling: transport stdio supports at most one proxy and no autoscaling/,
    ],
    [server('files', { autoscaling: { ...autoscaling, targetSessions: 3 } }), /targetSessions/],
    [remote('crm', { autoscaling, replicas: 1 }), /spec\.replicas: .*mutually exclusive/],
  ]
  for (const [object, message] of cases) t.match(problemsOf(object).join('\n'), message)
  t.same(
    problemsOf(
      virtual({ autoscaling: { minReplicas: 1, maxReplicas: 1 }, sessionStorage: { provider: 'memory' } }),
    ),
    [],
  )
})

t.test('an autoscaler with several pods and no shared store causes a warning', async (t) => {
  for (const object of [
    virtual({ autoscaling }),
    server('files', { autoscaling }),
    remote('crm', { autoscaling }),
  ]) {
    const w = world(object).settle()
    const { conditions } = w.get(object.kind, object.metadata.name)['status'] as { conditions: Condition[] }
    t.match(
      conditions.find(({ type }) => type === 'SessionStorageWarning'),
      { status: 'True', reason: 'SessionStorageMissingForReplicas' },
    )
  }
})

t.test('a pod has time to finish, and a custom preStop or spread replaces the default', async (t) => {
  const w = world(virtual(), server('files'), remote('crm')).settle()
  for (const name of ['vmcp-door', 'mcp-files-proxy', 'mcp-crm-remote-proxy']) {
    const { spec } = podsOf(w, 'Deployment', name).template
    t.equal(spec.terminationGracePeriodSeconds, 60)
    t.match(spec.containers[0]?.lifecycle, { preStop: { sleep: { seconds: 5 } } })
    t.equal(spec.topologySpreadConstraints.length, 2)
  }
  const own = {
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' }],
    containers: [{ name: 'vmcp', lifecycle: { preStop: { exec: { command: ['/drain'] } } } }],
  }
  w.apply(virtual({ podTemplateSpec: { spec: own } })).settle()
  const { spec } = podsOf(w, 'Deployment', 'vmcp-door').template
  t.strictSame(spec.topologySpreadConstraints, own.topologySpreadConstraints)
  t.strictSame(spec.containers[0]?.lifecycle, own.containers[0]?.lifecycle, 'one action, not two')
})

t.test('the proxy of an MCPServer has its own pod template', async (t) => {
  const over = (spec: object) => ({ resourceOverrides: { proxyDeployment: { podTemplateSpec: { spec } } } })
  const w = world(server('files', over({ priorityClassName: 'gateways' }))).settle()
  t.equal(podsOf(w, 'Deployment', 'mcp-files-proxy').template.spec.priorityClassName, 'gateways')
  t.notOk('priorityClassName' in podsOf(w, 'StatefulSet', 'mcp-files-server').template.spec)
  t.match(problemsOf(server('files', over({ priorityClassName: 3 }))), [
    /^spec\.resourceOverrides\.proxyDeployment\.podTemplateSpec\.spec\.priorityClassName: must be a string/,
  ])
  t.match(problemsOf(remote('crm', over({ priorityClassName: 'gateways' }))), [
    /^spec\.resourceOverrides\.proxyDeployment\.podTemplateSpec: is only for MCPServer/,
  ])
  const broken = world(
    server('files', over({ containers: [{ name: 'gatehouse', $patch: 'delete' }] })),
  ).settle()
  const { conditions } = broken.get('MCPServer', 'files')['status'] as { conditions: Condition[] }
  t.match(
    conditions.find(({ type }) => type === 'PodTemplateValid'),
    { status: 'False', message: /container gatehouse/ },
  )
})
