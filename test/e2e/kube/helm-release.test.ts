/**
 * Tests the objects that the chart creates, rejects and leaves behind, with a real Helm and a real API server. No pods
 * run; helm.test.ts covers the installation with its pods.
 */
import { join } from 'node:path'
import t from 'tap'
import { kinds } from '../../../schemas/index.ts'
import { makeAuthority } from '../../helpers/certificates.ts'
import { type KubeApiserver, kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { helm, helmMissing } from '../../helpers/kube/helm.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'

const chart = join(manifestsFolder, 'chart')
const system = 'gatehouse-system'
const crd = 'mcpgroups.gatehouse.dev'

/** Installs a Metacontroller without a label selector, like its own manifests. */
const metacontroller = (args: readonly string[]) => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'metacontroller', namespace: 'controllers' },
  spec: {
    replicas: 1,
    serviceName: '',
    selector: { matchLabels: { app: 'metacontroller' } },
    template: {
      metadata: { labels: { app: 'metacontroller' } },
      spec: {
        containers: [
          {
            name: 'metacontroller',
            image: 'ghcr.io/metacontroller/metacontroller:v4.17.2',
            command: ['/usr/bin/metacontroller'],
            args,
          },
        ],
      },
    },
  },
})

function helmOf(kube: KubeApiserver) {
  return (command: string, ...more: readonly string[]) =>
    helm([command, 'gatehouse', ...(command === 'uninstall' ? [] : [chart]), '-n', system, ...more], kube)
}

const described = (kube: KubeApiserver): string =>
  kube.get(['crd', crd]).spec.versions[0].schema.openAPIV3Schema.description

function describe(kube: KubeApiserver, value: string): void {
  const patch = [{ op: 'replace', path: '/spec/versions/0/schema/openAPIV3Schema/description', value }]
  kube.must(['patch', 'crd', crd, '--type=json', '-p', JSON.stringify(patch)])
}

const definitionsIn = (kube: KubeApiserver): number =>
  kube.must(['get', 'crds', '-o', 'name']).split('.gatehouse.dev').length - 1

t.setTimeout(240_000)

await t.test('a release of the chart', { skip: kubeMissing() || helmMissing() }, async (t) => {
  t.setTimeout(240_000)
  const kube = await startKubeApiserver(t)
  const release = helmOf(kube)

  await t.test(
    'reports a missing requirement of the cluster in one sentence, and creates nothing',
    async (t) => {
      const cases: readonly (readonly [set: string, sentence: string, advice: string])[] = [
        [
          'metacontroller.enabled=false',
          'does not have the kind CompositeController',
          'leave metacontroller.enabled at true',
        ],
        ['integrations.gatewayAPI=true', 'does not have the kind HTTPRoute', 'Install the CRDs'],
        ['serviceMonitor.enabled=true', 'does not have the kind ServiceMonitor', 'Prometheus operator'],
        ['certificates.mode=cert-manager', 'does not have the kind Certificate', 'Install cert-manager'],
        ['hooks.replica=1', 'replica', 'replica'],
      ]
      for (const [set, sentence, advice] of cases) {
        const { code, stderr } = release('install', '--create-namespace', '--set', set)
        t.equal(code, 1, set)
        t.match(stderr, sentence)
        t.match(stderr, advice)
        t.equal(definitionsIn(kube), 0, 'no object was created')
      }
    },
  )

  await t.test('rejects existing definitions, and adopts them with the setting for it', async (t) => {
    kube.must(['apply', '--server-side', '-f', join(manifestsFolder, 'crds', 'mcpgroups.yaml')])
    describe(kube, 'of somebody')
    const { code, stderr } = release('install', '--create-namespace')
    t.equal(code, 1)
    t.match(stderr, 'invalid ownership metadata')
    const again = release('install', '--create-namespace', '--take-ownership')
    t.equal(again.code, 0, again.stderr)
    t.not(described(kube), 'of somebody')
    t.equal(definitionsIn(kube), kinds.length)
    t.match(kube.must(['get', 'crds', '-o', 'name']), 'compositecontrollers.metacontroller.k8s.io')
  })

  await t.test('helm upgrade and rollback: update the definitions', async (t) => {
    const text = described(kube)
    for (const how of [['upgrade'], ['rollback', '1']]) {
      describe(kube, 'old')
      const [command = '', ...more] = how
      const args = [command, 'gatehouse', ...(command === 'upgrade' ? [chart] : more), '-n', system]
      const { code, stderr } = helm(args, kube)
      t.equal(code, 0, stderr)
      t.equal(described(kube), text, command)
    }
  })

  await t.test('helm upgrade: keeps the certificate and its trust', async (t) => {
    const secret = ['secret', 'gatehouse-hooks-tls', '-n', system]
    const webhook = ['validatingwebhookconfiguration', 'gatehouse-hooks']
    const data = {
      'tls.crt': Buffer.from('a').toString('base64'),
      'tls.key': Buffer.from('b').toString('base64'),
    }
    kube.must(['patch', ...secret, '--type=merge', '-p', JSON.stringify({ data })])
    const { ca } = await makeAuthority()
    const cert = Buffer.from(ca).toString('base64')
    const path = '/webhooks/0/clientConfig/caBundle'
    kube.must(['patch', ...webhook, '--type=json', '-p', JSON.stringify([{ op: 'add', path, value: cert }])])
    const { code, stderr } = release('upgrade', '--set', 'hooks.replicas=3')
    t.equal(code, 0, stderr)
    t.match(kube.get(secret).data, data)
    t.equal(kube.get(webhook).webhooks[0].clientConfig.caBundle, cert)
    t.equal(kube.get(['deployment', 'gatehouse-hooks', '-n', system]).spec.replicas, 3)
  })

  await t.test(
    'rejects a Metacontroller that would run our controllers too, and names the setting',
    async (t) => {
      kube.must(['create', 'namespace', 'controllers'])
      kube.must(['apply', '-f', '-'], JSON.stringify(metacontroller(['--zap-log-level=4'])))
      const { code, stderr } = release('upgrade')
      t.equal(code, 1)
      t.match(stderr, 'StatefulSet metacontroller in the namespace controllers')
      t.match(stderr, 'set metacontroller.enabled=false and metacontroller.namespace=controllers')
      kube.must(['apply', '-f', '-'], JSON.stringify(metacontroller(['--target-label-selector=team=other'])))
      t.equal(release('upgrade').code, 0, 'a Metacontroller with its own selector is accepted')
    },
  )

  await t.test('a shared Metacontroller replaces the private one, and vice versa', async (t) => {
    kube.must(['apply', '-f', '-'], JSON.stringify(metacontroller(['--zap-log-level=4'])))
    const isPrivate = () =>
      kube.kubectl(['get', 'deployment', 'gatehouse-metacontroller', '-n', system]).code === 0
    t.ok(isPrivate())
    const sets = ['--set', 'metacontroller.enabled=false', '--set', 'metacontroller.namespace=controllers']
    const shared = release('upgrade', ...sets)
    t.equal(shared.code, 0, shared.stderr)
    t.notOk(isPrivate())
    kube.must(['delete', 'statefulset', 'metacontroller', '-n', 'controllers'])
    const restored = release('upgrade', '--reset-values')
    t.equal(restored.code, 0, restored.stderr)
    t.ok(isPrivate())
  })

  await t.test(
    'helm uninstall: keeps definitions and objects, removes the rest; a new install works',
    async (t) => {
      kube.must(['delete', 'validatingwebhookconfiguration', 'gatehouse-hooks'])
      const group = {
        apiVersion: 'gatehouse.dev/v1beta1',
        kind: 'MCPGroup',
        metadata: { name: 'tools' },
        spec: {},
      }
      kube.must(['apply', '-f', '-'], JSON.stringify(group))
      const { code, stderr } = release('uninstall')
      t.equal(code, 0, stderr)
      t.equal(definitionsIn(kube), kinds.length)
      t.equal(kube.kubectl(['get', 'mcpgroup', 'tools']).code, 0)
      const left = 'clusterroles,clusterrolebindings,compositecontrollers,deployments,cronjobs,services'
      t.equal(kube.must(['get', left, '-A', '-l', 'app.kubernetes.io/part-of=gatehouse', '-o', 'name']), '')
      const again = release('install')
      t.equal(again.code, 0, again.stderr)
      t.equal(kube.kubectl(['get', 'mcpgroup', 'tools']).code, 0)
    },
  )
})
