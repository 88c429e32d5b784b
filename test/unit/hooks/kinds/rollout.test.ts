/** Status during a rollout that progresses, is stuck or is repaired, as kubectl and Flux interpret it. */
import t from 'tap'
import { entry, remote, resource, server, virtual, world } from '../../../hooks/resources.ts'
import { isWaitOver, kstatusOf } from '../../../helpers/hooks/kstatus.ts'
import type { World } from '../../../hooks/world.ts'

interface Status {
  phase?: string
  message?: string
  observedGeneration?: number
  conditions: {
    type: string
    status: string
    reason: string
    message: string
    observedGeneration?: number
  }[]
}

const stuck = {
  type: 'Progressing',
  status: 'False',
  reason: 'ProgressDeadlineExceeded',
  message: 'ReplicaSet "new" has timed out progressing.',
}
/** A Deployment with one old, ready pod and one new pod that does not start. */
const halfway = (generation: number, conditions: object[] = []) => ({
  observedGeneration: generation,
  replicas: 2,
  updatedReplicas: 1,
  readyReplicas: 1,
  availableReplicas: 1,
  conditions,
})
const done = (generation: number) => ({
  observedGeneration: generation,
  replicas: 1,
  updatedReplicas: 1,
  readyReplicas: 1,
  availableReplicas: 1,
})

/** The three kinds with a Deployment: its name, and the manifest before and after a change that replaces pods. */
const embedder = (image: string) => resource('EmbeddingServer', 'vectors', { model: 'm', image })
const subjects = [
  {
    kind: 'MCPServer',
    name: 'files',
    workload: ['Deployment', 'mcp-files-proxy'],
    before: server('files'),
    after: server('files', { proxyPort: 9000 }),
  },
  {
    kind: 'MCPRemoteProxy',
    name: 'crm',
    workload: ['Deployment', 'mcp-crm-remote-proxy'],
    before: remote('crm'),
    after: remote('crm', { proxyPort: 9000 }),
  },
  {
    kind: 'VirtualMCPServer',
    name: 'door',
    workload: ['Deployment', 'vmcp-door'],
    before: virtual(),
    after: virtual({ podTemplateSpec: { spec: { priorityClassName: 'high' } } }),
  },
  {
    kind: 'EmbeddingServer',
    name: 'vectors',
    workload: ['StatefulSet', 'embedding-vectors'],
    before: embedder('registry.example/tei:1'),
    after: embedder('registry.example/tei:2'),
  },
] as const

for (const { kind, name, workload, before, after } of subjects) {
  const status = (w: World) => w.get(kind, name)['status'] as Status
  const condition = (w: World, type: string) => status(w).conditions.find((item) => item.type === type)
  const workloadOf = (w: World) => {
    const [of, called] = workload
    const found = w.find(of, called)
    if (!found) throw new Error(`no ${of} ${called} among ${[...w.objects.keys()].join('\n')}`)
    return found
  }
  const set = (w: World, of: (generation: number) => object) => {
    const object = workloadOf(w)
    w.setStatus(object.kind, object.metadata.name, of(Number(object.metadata['generation']))).settle()
  }

  t.test(`${kind}: Reconciling until its pods are ready`, async (t) => {
    const w = world(before).settle()
    t.match(condition(w, 'Reconciling'), { status: 'True', reason: 'RolloutInProgress' })
    t.match(condition(w, 'Ready'), { status: 'False' })
    w.ready()
    t.equal(condition(w, 'Reconciling'), undefined, 'present only while it is True')
    t.equal(condition(w, 'Stalled'), undefined)
    t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 1 })
  })

  t.test(
    `${kind}: after a change, Ready refers to the previous generation until the rollout is complete`,
    async (t) => {
      const w = world(before).ready()
      w.apply(after)
      w.sync(kind, name)
      t.match(
        condition(w, 'Reconciling'),
        { status: 'True' },
        'in the same sync that changes the template, while the workload still looks complete',
      )
      t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 1 })
      t.equal(status(w).observedGeneration, 2)
      w.settle()
      t.match(condition(w, 'Reconciling'), { status: 'True' }, 'its controller has not observed the change')
      set(w, (generation) => halfway(generation))
      t.match(condition(w, 'Reconciling'), { status: 'True' }, 'a pod of the previous version is left')
      t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 1 })
      set(w, done)
      t.equal(condition(w, 'Reconciling'), undefined)
      t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 2 })
    },
  )

  t.test(`${kind}: a workload status of an older generation does not make it ready`, async (t) => {
    const w = world(before).settle()
    for (const object of w.objects.values()) {
      const { kind: of, metadata } = object
      if (['Deployment', 'StatefulSet'].includes(of)) w.setStatus(of, metadata.name, done(0))
    }
    w.settle()
    t.match(condition(w, 'Ready'), { status: 'False' })
    t.notMatch(status(w).phase, /Ready|Degraded/)
    t.match(condition(w, 'Reconciling'), { status: 'True', reason: 'RolloutInProgress' })
    w.ready()
    t.match(condition(w, 'Ready'), { status: 'True' })
    set(w, (generation) => done(generation - 1))
    t.match(condition(w, 'Ready'), { status: 'True' }, 'its pods still respond')
  })

  t.test(
    `${kind}: Ready refers to a generation only after its rollout is complete, even for the first one`,
    async (t) => {
      const w = world(before).settle()
      for (const object of w.objects.values()) {
        const { kind: of, metadata } = object
        if (['Deployment', 'StatefulSet'].includes(of)) w.setStatus(of, metadata.name, done(1))
      }
      set(w, (generation) => halfway(generation))
      t.match(
        condition(w, 'Ready'),
        { status: 'True', observedGeneration: 0 },
        'the first rollout, half done',
      )
      w.ready()
      t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 1 })
      w.apply(after).settle()
      set(w, (generation) => ({ observedGeneration: generation, replicas: 1, updatedReplicas: 1 }))
      t.match(condition(w, 'Ready'), { status: 'False' }, 'no pod serves')
      set(w, (generation) => halfway(generation))
      t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 1 }, 'the old pod is ready again')
      t.notOk(isWaitOver(w.get(kind, name)), 'kubectl wait')
      set(w, done)
      t.ok(isWaitOver(w.get(kind, name)), 'kubectl wait')
    },
  )

  if (kind === 'EmbeddingServer') continue // A StatefulSet has no deadline.
  t.test(
    `${kind}: a rollout past its deadline is reported until it is repaired, although old pods still respond`,
    async (t) => {
      const w = world(before).ready()
      w.apply(after).settle()
      set(w, (generation) => halfway(generation, [stuck]))
      t.match(condition(w, 'Stalled'), { status: 'True', reason: 'RolloutStalled', message: /timed out/ })
      t.equal(condition(w, 'Reconciling'), undefined)
      t.match(status(w), { phase: 'Degraded', message: /stuck.*timed out/ })
      t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 1 }, 'clients are still served')
      w.apply(before).settle()
      t.equal(condition(w, 'Stalled'), undefined, "the workload's status is about the previous version")
      t.match(condition(w, 'Reconciling'), { status: 'True' })
      set(w, done)
      t.match(status(w), { phase: 'Ready' })
      t.match(condition(w, 'Ready'), { status: 'True', observedGeneration: 3 })
    },
  )
}

t.test(
  'a StatefulSet that waits for an earlier pod: the status names the manual step that Kubernetes requires',
  async (t) => {
    const stateful = [
      {
        kind: 'MCPServer',
        name: 'files',
        set: 'mcp-files-server',
        before: server('files'),
        after: server('files', { image: 'registry.example/files:3' }),
      },
      {
        kind: 'EmbeddingServer',
        name: 'vectors',
        set: 'embedding-vectors',
        before: embedder('registry.example/tei:1'),
        after: embedder('registry.example/tei:2'),
      },
    ]
    for (const { kind, name, set, before, after } of stateful) {
      const w = world(before).ready()
      w.apply(after).settle()
      const message = (counts: object, replicas = 1) => {
        const object = w.get('StatefulSet', set)
        Object.assign(object.spec ?? {}, { replicas })
        const revisions = { currentRevision: 'a', updateRevision: 'b' }
        const observedGeneration = object.metadata['generation']
        w.setStatus('StatefulSet', set, { observedGeneration, replicas, ...revisions, ...counts }).settle()
        const { conditions } = w.get(kind, name)['status'] as Status
        return conditions.find(({ type }) => type === 'Reconciling')?.message
      }
      t.match(message({ updatedReplicas: 0, readyReplicas: 0 }), `kubectl delete pod ${set}-0`)
      const own = 'Pods are being created or replaced'
      t.equal(message({ updatedReplicas: 1, readyReplicas: 0 }), own, `${kind}: the new pod starts`)
      t.equal(message({ updatedReplicas: 0, readyReplicas: 1 }), own, `${kind}: the old pod serves`)
    }
  },
)

t.test(
  'kstatus and kubectl wait: every kind at every step of a failing and then repaired rollout',
  async (t) => {
    for (const { kind, name, workload, before, after } of subjects) {
      const [of, called] = workload
      const w = world(before)
      const set = (status: (generation: number) => object) =>
        w.setStatus(of, called, status(Number(w.get(of, called).metadata['generation']))).settle()
      const is = (wanted: string, wait: 'ends' | 'continues', step: string) => {
        t.equal(kstatusOf(w.get(kind, name)), wanted, `${kind} ${step}`)
        t.equal(isWaitOver(w.get(kind, name)), wait === 'ends', `${kind} ${step}: kubectl wait`)
      }
      w.sync(kind, name)
      is('InProgress', 'continues', 'before any object exists')
      w.ready()
      is('Current', 'ends', 'running')
      w.apply(after)
      w.sync(kind, name)
      is('InProgress', 'continues', 'changed')
      w.settle()
      set((generation) => halfway(generation))
      is('InProgress', 'continues', 'halfway')
      if (of === 'Deployment') {
        set((generation) => halfway(generation, [stuck]))
        is('Failed', 'continues', 'stuck')
      }
      w.apply(before).settle()
      is('InProgress', 'continues', 'reverted')
      w.ready()
      is('Current', 'ends', 'mended')
    }
  },
)

t.test('kstatus: an invalid configuration is Failed, a valid one Current', async (t) => {
  const w = world(
    resource('MCPOIDCConfig', 'wrong', { type: 'inline' }),
    resource('MCPOIDCConfig', 'right', { type: 'inline', inline: { issuer: 'https://login.example.com' } }),
  ).settle()
  t.equal(kstatusOf(w.get('MCPOIDCConfig', 'wrong')), 'Failed')
  t.equal(kstatusOf(w.get('MCPOIDCConfig', 'right')), 'Current')
})

t.test('a StatefulSet is reconciling while its revisions differ', async (t) => {
  const w = world(server('files')).ready()
  const revision = (currentRevision: string) =>
    w
      .setStatus('StatefulSet', 'mcp-files-server', { ...done(1), currentRevision, updateRevision: 'b' })
      .settle()
  const reconciling = () =>
    (w.get('MCPServer', 'files')['status'] as Status).conditions.find(({ type }) => type === 'Reconciling')
  revision('a')
  t.match(reconciling(), { status: 'True' })
  revision('b')
  t.equal(reconciling(), undefined)
})

t.test(
  'a manifest that must be changed is Stalled; a manifest that waits for another object is Reconciling',
  async (t) => {
    const w = world(
      resource('MCPOIDCConfig', 'wrong', { type: 'inline' }),
      resource('MCPOIDCConfig', 'later', {
        type: 'inline',
        inline: {
          issuer: 'https://login.example.com',
          clientId: 'c',
          clientSecretRef: { name: 'absent', key: 'k' },
        },
      }),
      server('files', { oidcConfigRef: { name: 'none', audience: 'https://x.example.com' } }),
      virtual({ podTemplateSpec: { spec: { containers: 'none' } } }),
      server('no-command', { transport: 'stdio' }),
      server('empty-command', {
        transport: 'stdio',
        podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: [''] }] } },
      }),
      entry('waits', { externalAuthConfigRef: { name: 'none' } }),
      resource('MCPExternalAuthConfig', 'obo', { type: 'obo', obo: {} }),
      entry('enterprise', { externalAuthConfigRef: { name: 'obo' } }),
    ).settle()
    const types = (kind: string, name: string) =>
      (w.get(kind, name)['status'] as Status).conditions
        .map(({ type }) => type)
        .filter((type) => type === 'Stalled' || type === 'Reconciling')
    t.strictSame(types('MCPOIDCConfig', 'wrong'), ['Stalled'])
    t.strictSame(types('MCPOIDCConfig', 'later'), ['Reconciling'])
    t.strictSame(types('MCPServer', 'files'), ['Reconciling'])
    t.strictSame(types('VirtualMCPServer', 'door'), ['Stalled'])
    t.strictSame(types('MCPServer', 'no-command'), ['Reconciling'], 'its entrypoint runs')
    t.strictSame(types('MCPServer', 'empty-command'), ['Stalled'], 'its proxy file would be invalid')
    t.strictSame(types('MCPServerEntry', 'waits'), ['Reconciling'])
    t.strictSame(types('MCPServerEntry', 'enterprise'), ['Stalled'], 'the reason decides, not the summary')
  },
)

t.test(
  'an invalid pod template always sets its condition to False, whatever other problems exist',
  async (t) => {
    const broken = { spec: { containers: 'none' } }
    const incoming = { incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'none', audience: 'x' } } }
    const removing = { spec: { containers: [{ name: 'vmcp', $patch: 'delete' }] } }
    const conditionOf = (object: ReturnType<typeof virtual>, type: string) => {
      const w = world(object).settle()
      const { conditions } = w.get(object.kind, object.metadata.name)['status'] as Status
      return conditions.find((item) => item.type === type)
    }
    const invalid = { status: 'False', reason: 'InvalidPodTemplateSpec' }
    t.match(conditionOf(virtual({ podTemplateSpec: broken }), 'PodTemplateSpecValid'), invalid)
    const unresolved = virtual({ ...incoming, podTemplateSpec: removing })
    t.match(conditionOf(unresolved, 'PodTemplateSpecValid'), invalid, 'with a broken reference, too')
    t.match(conditionOf(server('files', { podTemplateSpec: broken }), 'PodTemplateValid'), invalid)
    const ofProxy = { resourceOverrides: { proxyDeployment: { podTemplateSpec: broken } } }
    t.match(conditionOf(server('files', ofProxy), 'PodTemplateValid'), invalid, "the proxy's template, too")
    t.match(conditionOf(remote('crm', { podTemplateSpec: broken }), 'PodTemplateValid'), invalid)
    const vectors = resource('EmbeddingServer', 'vectors', { model: 'm', podTemplateSpec: broken })
    t.match(conditionOf(vectors, 'PodTemplateValid'), invalid)
    t.match(conditionOf(virtual(incoming), 'PodTemplateSpecValid'), { status: 'True' })
  },
)
