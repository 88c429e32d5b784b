/** Every object of every variant: names, labels, selectors, restrictions, and references. */
import t from 'tap'
import { idOf, kustomized, type Obj } from '../../helpers/hooks/manifests.ts'
import { untyped } from '../../helpers/untyped.ts'

const clusterScoped =
  'Namespace CustomResourceDefinition ClusterRole ClusterRoleBinding CompositeController ValidatingWebhookConfiguration'.split(
    ' ',
  )

interface Container {
  readonly name: string
  readonly image: string
  readonly env?: readonly { name: string; value?: string }[]
  readonly ports?: readonly { name: string; containerPort: number }[]
  readonly volumeMounts?: readonly { name: string; mountPath: string }[]
  readonly securityContext: Record<string, unknown>
  readonly resources: { requests: Record<string, string>; limits: Record<string, string> }
  readonly [member: string]: unknown
}

interface PodSpec {
  readonly containers: readonly Container[]
  readonly volumes?: readonly { name: string; secret?: { secretName: string } }[]
  readonly serviceAccountName: string
  readonly securityContext: Record<string, unknown>
  readonly [member: string]: unknown
}

interface Pod {
  readonly owner: Obj
  readonly labels: Record<string, string>
  readonly spec: PodSpec
}

/** Returns the member at a path. */
function at(object: unknown, ...path: string[]): ReturnType<typeof untyped> {
  return path.reduce((from, key) => untyped(from)?.[key], untyped(object))
}

function podsOf(objects: readonly Obj[]): readonly Pod[] {
  const paths: Readonly<Record<string, readonly string[]>> = {
    Deployment: ['spec', 'template'],
    Job: ['spec', 'template'],
    CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
  }
  return objects.flatMap((owner) => {
    const path = paths[owner.kind]
    if (!path) return []
    return [{ owner, labels: at(owner, ...path, 'metadata', 'labels'), spec: at(owner, ...path, 'spec') }]
  })
}

const matches = (selector: Record<string, string>, labels: Record<string, string> | undefined): boolean =>
  Object.entries(selector).every(([key, value]) => labels?.[key] === value)

const variants = {
  default: kustomized(),
  'cert-manager': kustomized('overlays/cert-manager'),
  everything: kustomized('overlays/everything'),
  'private-metacontroller': kustomized('overlays/private-metacontroller'),
  monitoring: [...kustomized('base'), ...kustomized('monitoring')],
}

for (const [variant, objects] of Object.entries(variants)) {
  const ours = objects.filter(({ kind }) => kind !== 'CustomResourceDefinition')
  const pods = podsOf(objects)
  const of = (kind: string) => objects.filter((object) => object.kind === kind)

  await t.test(`${variant}: every object has a unique name, labels and a namespace`, async (t) => {
    const ids = objects.map(idOf)
    t.equal(new Set(ids).size, ids.length, 'no object is defined twice')
    for (const object of ours) {
      const { name, namespace, labels } = object.metadata
      t.match(name, /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/, idOf(object))
      t.equal(labels?.['app.kubernetes.io/part-of'], 'gatehouse', idOf(object))
      for (const value of Object.values(labels ?? {})) t.match(value, /^[\w.-]{1,63}$/)
      t.equal(namespace, clusterScoped.includes(object.kind) ? undefined : 'gatehouse-system', idOf(object))
    }
  })

  await t.test(`${variant}: selectors match exactly their own pods`, async (t) => {
    for (const object of of('Deployment')) {
      const selector: Record<string, string> = at(object, 'spec', 'selector', 'matchLabels')
      t.strictSame(
        pods.filter(({ labels }) => matches(selector, labels)).map(({ owner }) => owner),
        [object],
      )
      t.notOk('app.kubernetes.io/version' in selector, 'a selector never changes')
    }
    for (const object of of('Service')) {
      const found = pods.filter(({ labels }) => matches(at(object, 'spec', 'selector'), labels))
      t.equal(found.length, 1)
      const ports = found.flatMap(({ spec }) => spec.containers.flatMap((one) => one.ports ?? []))
      const wanted: { targetPort: string }[] = at(object, 'spec', 'ports')
      for (const port of wanted) {
        t.ok(
          ports.some(({ name }) => name === port.targetPort),
          `port ${port.targetPort}`,
        )
      }
    }
    for (const object of [...of('PodDisruptionBudget'), ...of('NetworkPolicy')]) {
      const key = object.kind === 'NetworkPolicy' ? 'podSelector' : 'selector'
      const selector: Record<string, string> = at(object, 'spec', key, 'matchLabels')
      t.ok(
        pods.some(({ labels }) => matches(selector, labels)),
        idOf(object),
      )
      t.ok(Object.keys(selector).length > 0, 'an empty selector would mean every pod')
    }
    for (const object of of('ServiceMonitor')) {
      const selector: Record<string, string> = at(object, 'spec', 'selector', 'matchLabels')
      t.equal(of('Service').filter(({ metadata }) => matches(selector, metadata.labels)).length, 1)
    }
  })

  await t.test(
    `${variant}: every pod meets the restricted profile, and cannot write to its image`,
    async (t) => {
      t.ok(pods.length > 0)
      for (const { owner, spec } of pods) {
        t.match(
          spec.securityContext,
          { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          idOf(owner),
        )
        for (const member of ['hostNetwork', 'hostPID', 'hostIPC']) t.notOk(member in spec)
        for (const volume of spec.volumes ?? []) t.notOk('hostPath' in volume)
        for (const container of spec.containers) {
          t.match(container.securityContext, {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            runAsNonRoot: true,
            capabilities: { drop: ['ALL'] },
          })
          t.ok(container.resources.requests['cpu'] && container.resources.requests['memory'])
          t.ok(container.resources.limits['memory'], 'memory is bounded')
          t.match(container.image, /:v?\d+\.\d+\.\d+$|@sha256:/, 'an exact version')
          for (const { name, value = '' } of container.env ?? [])
            t.notMatch(`${name}=${value}`, /password|token|secret/i)
        }
      }
    },
  )

  await t.test(
    `${variant}: servers have probes, a spread and a disruption budget, and their volumes and accounts exist`,
    async (t) => {
      for (const { owner, spec } of pods) {
        const mounted = spec.containers.flatMap((one) => one.volumeMounts ?? []).map(({ name }) => name)
        t.strictSame(mounted.toSorted(), (spec.volumes ?? []).map(({ name }) => name).toSorted(), idOf(owner))
        t.ok(
          of('ServiceAccount').some(({ metadata }) => metadata.name === spec.serviceAccountName),
          'account',
        )
        if (owner.metadata.name !== 'gatehouse-hooks') continue
        const [hooks] = spec.containers
        for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
          t.match(hooks?.[probe], { httpGet: { port: 'https', scheme: 'HTTPS' } }, probe)
        }
        t.equal(at(owner, 'spec', 'replicas'), 2)
        t.equal(at(spec, 'topologySpreadConstraints').length, 2)
        t.ok(of('PodDisruptionBudget').length, 'a node can be drained without losing admission')
      }
    },
  )

  await t.test(`${variant}: the serving certificate has a source, and pods wait for it`, async (t) => {
    if (variant === 'monitoring') return
    const secrets = pods.flatMap(({ spec }) => spec.volumes ?? []).map(({ secret }) => secret)
    t.strictSame(secrets, [
      {
        secretName: 'gatehouse-hooks-tls',
        items: [
          { key: 'tls.crt', path: 'tls.crt' },
          { key: 'tls.key', path: 'tls.key' },
        ],
      },
    ])
    const managed: string[] = of('Certificate').map((object) => at(object, 'spec', 'secretName'))
    const own = of('Secret').map(({ metadata }) => metadata.name)
    t.equal([...managed, ...own].filter((name) => name === 'gatehouse-hooks-tls').length, 1)
    for (const secret of of('Secret'))
      t.notOk('data' in secret || 'stringData' in secret, 'no key in a manifest')
  })

  await t.test(`${variant}: roles are bound to existing accounts, and grant no wildcard`, async (t) => {
    for (const binding of [...of('RoleBinding'), ...of('ClusterRoleBinding')]) {
      const role: { kind: string; name: string } = at(binding, 'roleRef')
      t.ok(
        of(role.kind).some(({ metadata }) => metadata.name === role.name),
        `${role.kind} ${role.name}`,
      )
      const subjects: { kind: string; name: string; namespace: string }[] = at(binding, 'subjects')
      for (const subject of subjects) {
        t.ok(
          of(subject.kind).some(({ metadata }) => metadata.name === subject.name),
          subject.name,
        )
        t.equal(subject.namespace, 'gatehouse-system')
      }
    }
    for (const role of [...of('Role'), ...of('ClusterRole')]) {
      t.notMatch(JSON.stringify(at(role, 'rules')), '"*"', idOf(role))
      t.notMatch(JSON.stringify(at(role, 'rules')), /escalate|impersonate|"bind"/, idOf(role))
    }
  })
}
