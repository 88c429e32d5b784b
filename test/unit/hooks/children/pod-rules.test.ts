/**
 * Pod templates that the API server would refuse: refused by us first, at admission where the template alone shows it,
 * else in the condition, in the API server's words.
 */
import t from 'tap'
import { validateResource } from '../../../../hooks/index.ts'
import { untyped } from '../../../helpers/untyped.ts'
import { resource, server, virtual, world } from '../../../hooks/resources.ts'

const inPod = (spec: object) => virtual({ podTemplateSpec: { spec } })
const inContainer = (container: object) => inPod({ containers: [{ name: 'vmcp', ...container }] })
const sidecar = { name: 'sidecar', image: 'registry.example/sidecar:1' }
const http = { httpGet: { path: '/', port: 80 } }
const secret = { secretKeyRef: { name: 's', key: 'k' } }

const atAdmission: readonly [string, object, RegExp][] = [
  [
    'a sidecar without image',
    inPod({ containers: [{ name: 'sidecar' }] }),
    /containers\[0\]\.image: Required value/,
  ],
  [
    'an init container without image',
    inPod({ initContainers: [{ name: 'first' }] }),
    /initContainers\[0\]\.image: Required value/,
  ],
  [
    'a restart policy that a Deployment does not have',
    inPod({ restartPolicy: 'OnFailure' }),
    /restartPolicy: Unsupported value: "OnFailure": supported values: "Always"/,
  ],
  [
    'two handlers in one probe',
    inContainer({ livenessProbe: { ...http, tcpSocket: { port: 80 } } }),
    /livenessProbe\.tcpSocket: Forbidden: may not specify more than 1 handler type/,
  ],
  [
    'a value and its source',
    inContainer({ env: [{ name: 'A', value: 'x', valueFrom: secret }] }),
    /env\[0\]\.valueFrom: Invalid value: "": may not be specified when `value` is not empty/,
  ],
  [
    'two sources of a value',
    inContainer({ env: [{ name: 'A', valueFrom: { ...secret, fieldRef: { fieldPath: 'metadata.name' } } }] }),
    /may not have more than one field specified at a time/,
  ],
  [
    'two sources of a volume',
    inPod({ volumes: [{ name: 'v', emptyDir: {}, persistentVolumeClaim: { claimName: 'c' } }] }),
    /volumes\[0\]\.persistentVolumeClaim: Forbidden: may not specify more than 1 volume type/,
  ],
  [
    'a way out of a host path',
    inPod({ volumes: [{ name: 'v', hostPath: { path: '/data/../etc' } }] }),
    /hostPath\.path: Invalid value: "\/data\/\.\.\/etc": must not contain '\.\.'/,
  ],
  [
    'a way out of a host path of an MCPServer',
    server('files', { volumes: [{ name: 'v', hostPath: '/data/..', mountPath: '/v' }] }),
    /spec\.volumes\[0\]\.hostPath: must not contain '\.\.'/,
  ],
]

for (const [what, manifest, message] of atAdmission) {
  t.test(`admission refuses ${what}`, async (t) => {
    const { violations } = validateResource(manifest)
    t.equal(violations.length, 1)
    t.match(violations.map(({ path, message }) => `${path}: ${message}`)[0], message)
  })
}

/** What shows only beside the generated template. */
const inSync: readonly [string, object, RegExp][] = [
  [
    'a mount without a volume',
    inContainer({ volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
    /volumeMounts\[\d+\]\.name Not found: "data"/,
  ],
  [
    'another handler beside the generated one',
    inContainer({ livenessProbe: { exec: { command: ['true'] } } }),
    /livenessProbe\.httpGet Forbidden: may not specify more than 1 handler type \(set exec to null to replace it\)/,
  ],
  [
    'a value beside the generated source',
    inContainer({ env: [{ name: 'GATEHOUSE_POD_NAME', value: 'x' }] }),
    /may not be specified when `value` is not empty/,
  ],
  [
    'a claim over the generated emptyDir',
    inPod({ volumes: [{ name: 'tmp', persistentVolumeClaim: { claimName: 'c' } }] }),
    /volumes\[\d+\]\.persistentVolumeClaim Forbidden: may not specify more than 1 volume type \(set emptyDir to null/,
  ],
  ['a volume of no kind', inPod({ volumes: [{ name: 'v' }] }), /Required value: must specify a volume type/],
]

for (const [what, manifest, message] of inSync) {
  t.test(`the condition tells ${what}, and what runs stays`, async (t) => {
    t.strictSame(validateResource(manifest).violations, [], 'nothing that the manifest alone shows')
    const w = world(virtual()).ready()
    const before = JSON.stringify(w.get('Deployment', 'vmcp-door')['spec'])
    w.apply(manifest as ReturnType<typeof virtual>).settle()
    const { conditions } = w.get('VirtualMCPServer', 'door')['status'] as {
      conditions: { type: string; status: string; message: string }[]
    }
    const condition = conditions.find(({ type }) => type === 'PodTemplateSpecValid')
    t.match(condition, { status: 'False', message })
    t.equal(JSON.stringify(w.get('Deployment', 'vmcp-door')['spec']), before)
  })
}

t.test('what the API server takes is taken', async (t) => {
  const taken = inPod({
    restartPolicy: 'Always',
    initContainers: [{ name: 'first', image: 'registry.example/first:1', restartPolicy: 'Always' }],
    containers: [
      {
        name: 'vmcp',
        livenessProbe: { httpGet: null, exec: { command: ['true'] } },
        env: [{ name: 'A', value: '', valueFrom: secret }],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
      sidecar,
    ],
    volumes: [
      { name: 'tmp', emptyDir: null, persistentVolumeClaim: { claimName: 'c' } },
      { name: 'data', hostPath: { path: '/data/..hidden' } },
    ],
  })
  t.strictSame(validateResource(taken).violations, [])
  const w = world(taken).settle()
  t.ok(w.find('Deployment', 'vmcp-door'))
  const vectors = resource('EmbeddingServer', 'vectors', {
    model: 'm',
    podTemplateSpec: { spec: { containers: [{ name: 'embedding', env: [{ name: 'A', value: '1' }] }] } },
  })
  t.strictSame(validateResource(vectors).violations, [], 'the generated container has an image of its own')
})

t.test('the volume of a model cache is one that a pod template may stand beside', async (t) => {
  const w = world(
    resource('EmbeddingServer', 'vectors', {
      model: 'm',
      modelCache: { enabled: true, size: '1Gi' },
      podTemplateSpec: { spec: { nodeSelector: { disk: 'fast' } } },
    }),
  ).settle()
  t.match(w.find('StatefulSet', 'embedding-vectors'), {
    spec: {
      template: { spec: { nodeSelector: { disk: 'fast' } } },
      volumeClaimTemplates: [{ metadata: { name: 'model-cache' } }],
    },
  })
  const { conditions } = untyped(w.find('EmbeddingServer', 'vectors')).status
  t.match(
    conditions.find(({ type }: { type: string }) => type === 'PodTemplateValid'),
    { status: 'True' },
  )
})
