import t from 'tap'
import { lastAppliedOrName, lastApplied } from '../../../hooks/sync/last-applied.ts'
import { proves } from '../../helpers/proves.ts'
import { server, virtual, world } from '../../hooks/resources.ts'

proves('3.error.authzConfigRef.kind')

const applied = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'team' },
  data: { a: '1' },
}

t.test('lastAppliedOrName: returns the applied object, not the stored one', async (t) => {
  const child = {
    ...applied,
    metadata: {
      ...applied.metadata,
      uid: 'u',
      annotations: { 'metacontroller.k8s.io/last-applied-configuration': JSON.stringify(applied) },
    },
    data: { a: '1', foreign: '2' },
  }
  t.strictSame(lastAppliedOrName(child), applied)
})

t.test(
  "lastApplied: with server-side apply, returns only Metacontroller's fields of the object",
  async (t) => {
    const child = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name: 'd',
        namespace: 'team',
        labels: { ours: '1', theirs: '2' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'u' }],
        managedFields: [
          { manager: 'kubectl', operation: 'Update', fieldsV1: { 'f:spec': { 'f:replicas': {} } } },
          {
            manager: 'metacontroller',
            operation: 'Apply',
            fieldsV1: {
              'f:metadata': { 'f:labels': { 'f:ours': {} }, 'f:ownerReferences': { 'k:{"uid":"u"}': {} } },
              'f:spec': {
                'f:template': {
                  'f:spec': {
                    'f:containers': {
                      'k:{"name":"vmcp"}': { '.': {}, 'f:name': {}, 'f:image': {}, 'f:args': {} },
                    },
                  },
                },
                'f:finalizers': { 'v:"a"': {} },
              },
            },
          },
        ],
      },
      spec: {
        replicas: 3,
        finalizers: ['a', 'b'],
        template: {
          spec: {
            containers: [
              { name: 'vmcp', image: 'i', args: ['x'], terminationMessagePath: '/dev/termination-log' },
              { name: 'injected', image: 'sidecar' },
            ],
            restartPolicy: 'Always',
          },
        },
      },
    }
    t.strictSame(lastApplied(child), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { labels: { ours: '1' }, name: 'd', namespace: 'team' },
      spec: {
        template: { spec: { containers: [{ name: 'vmcp', image: 'i', args: ['x'] }] } },
        finalizers: ['a'],
      },
    })
  },
)

t.test(
  'lastAppliedOrName: returns only the name of an object without a readable applied configuration',
  async (t) => {
    const annotations = { 'metacontroller.k8s.io/last-applied-configuration': '{"kind":"Other"' }
    t.strictSame(lastAppliedOrName({ ...applied, metadata: { ...applied.metadata, annotations } }), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'c', namespace: 'team' },
    })
  },
)

t.test('sync: a broken reference leaves every child unchanged and is reported', async (t) => {
  const w = world(server('files'), virtual()).ready()
  const before = w.sync('VirtualMCPServer', 'door').children
  const after = w.remove('MCPGroup', 'tools').sync('VirtualMCPServer', 'door')
  const byName = (list: typeof before) => [...list].map((child) => JSON.stringify(child)).sort()
  t.strictSame(byName(after.children), byName(before))
  t.match(after.status, { phase: 'Failed', message: /MCPGroup tools does not exist/ })
})

t.test(
  'sync: a configuration for another policy engine fails the server, and the failure names its type',
  async (t) => {
    const { resource } = await import('../../hooks/world.ts')
    const httpv1 = resource('MCPAuthzConfig', 'policies', {
      type: 'httpv1',
      config: { http: { url: 'https://pdp.example.com' }, claim_mapping: 'standard' },
    })
    const w = world(
      httpv1,
      virtual({ incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'policies' } } }),
    ).settle()
    const status = w.get('VirtualMCPServer', 'door')['status'] as { conditions: { type: string }[] }
    t.match(
      status.conditions.find(({ type }) => type === 'AuthzConfigRefValidated'),
      { status: 'False', reason: 'AuthzConfigRefNotValid', message: /httpv1.*cedarv1/ },
    )
    t.match(status, { phase: 'Failed' })
  },
)
