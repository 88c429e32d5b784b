/**
 * Pod templates that the API server would reject. Admission rejects a template that is invalid on its own; the
 * condition reports the rest, in the API server's words.
 */
import t from 'tap'
import { validateResource } from '../../../../hooks/index.ts'
import { untyped } from '../../../helpers/untyped.ts'
import { remote, resource, server, virtual, world } from '../../../hooks/resources.ts'

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
    'a path that leaves a host path',
    inPod({ volumes: [{ name: 'v', hostPath: { path: '/data/../etc' } }] }),
    /hostPath\.path: Invalid value: "\/data\/\.\.\/etc": must not contain '\.\.'/,
  ],
  [
    'a path that leaves a host path of an MCPServer',
    server('files', { volumes: [{ name: 'v', hostPath: '/data/..', mountPath: '/v' }] }),
    /spec\.volumes\[0\]\.hostPath: must not contain '\.\.'/,
  ],
]

for (const [what, manifest, message] of atAdmission) {
  t.test(`admission rejects ${what}`, async (t) => {
    const { violations } = validateResource(manifest)
    t.equal(violations.length, 1)
    t.match(violations.map(({ path, message }) => `${path}: ${message}`)[0], message)
  })
}

const inServer = (container: object, spec: object = {}) =>
  server('files', { podTemplateSpec: { spec: { containers: [{ name: 'mcp', ...container }] } }, ...spec })
const inProxy = (container: object, spec: object = {}) =>
  server('files', {
    resourceOverrides: {
      proxyDeployment: { podTemplateSpec: { spec: { containers: [{ name: 'gatehouse', ...container }] } } },
    },
    ...spec,
  })
const inRemote = (container: object, spec: object = {}) =>
  remote('crm', { podTemplateSpec: { spec: { containers: [{ name: 'gatehouse', ...container }] } }, ...spec })
const inEmbedding = (container: object) =>
  resource('EmbeddingServer', 'vectors', {
    model: 'm',
    podTemplateSpec: { spec: { containers: [{ name: 'embedding', ...container }] } },
  })
const execProbe = { exec: { command: ['true'] } }

/** Problems that appear in combination with the generated template, regardless of the resource's references. */
const besideGenerated: readonly [string, object, RegExp][] = [
  [
    'another handler next to the generated one',
    inContainer({ livenessProbe: execProbe }),
    /^spec\.podTemplateSpec\.spec\.containers\[0\]\.livenessProbe\.exec: Forbidden: may not specify more than 1 handler type \(set httpGet to null to replace it\)$/,
  ],
  [
    'another handler, of an MCPServer',
    inServer({ readinessProbe: execProbe }),
    /readinessProbe\.exec: Forbidden: .+ \(set tcpSocket to null/,
  ],
  [
    'another handler, of the proxy of an MCPServer',
    inProxy({ startupProbe: execProbe }),
    /^spec\.resourceOverrides\.proxyDeployment\.podTemplateSpec\.spec\.containers\[0\]\.startupProbe\.exec: .+set httpGet to null/,
  ],
  [
    'another handler, of an MCPRemoteProxy',
    inRemote({ livenessProbe: { grpc: { port: 1 } } }),
    /livenessProbe\.grpc: .+set httpGet to null/,
  ],
  [
    'another handler, of an EmbeddingServer',
    inEmbedding({ startupProbe: { tcpSocket: { port: 1 } } }),
    /startupProbe\.tcpSocket: .+set httpGet to null/,
  ],
  [
    'another handler, in a list where the container is not the first',
    inPod({ containers: [sidecar, { name: 'vmcp', livenessProbe: execProbe }] }),
    /containers\[1\]\.livenessProbe\.exec/,
  ],
  [
    'a value next to the generated source',
    inContainer({
      env: [
        { name: 'A', value: '1' },
        { name: 'GATEHOUSE_POD_NAME', value: 'x' },
      ],
    }),
    /env\[1\]\.valueFrom: .*`value` is not empty \(set valueFrom to null to replace it\)/,
  ],
  [
    'a source next to a generated value',
    inContainer({ env: [{ name: 'HOME', valueFrom: secret }] }),
    /env\[0\]\.valueFrom: .*\(set value to null to replace it\)/,
  ],
  [
    'another source next to a generated one',
    inServer(
      { env: [{ name: 'TOKEN', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }] },
      { secrets: [{ name: 's', key: 'TOKEN' }] },
    ),
    /env\[0\]\.valueFrom: .*more than one field.*\(set secretKeyRef to null to replace it\)/,
  ],
  [
    'a claim over the generated emptyDir',
    inPod({ volumes: [{ name: 'tmp', persistentVolumeClaim: { claimName: 'c' } }] }),
    /volumes\[0\]\.persistentVolumeClaim: Forbidden: .+1 volume type \(set emptyDir to null to replace it\)/,
  ],
  [
    'a claim over the volume of the certificate',
    remote('crm', {
      tls: { secretName: 't' },
      podTemplateSpec: { spec: { volumes: [{ name: 'serving-tls', emptyDir: {} }] } },
    }),
    /volumes\[0\]\.emptyDir: Forbidden: .+\(set secret to null to replace it\)/,
  ],
  [
    'root in a container that must not run as root',
    inContainer({ securityContext: { runAsUser: 0 } }),
    /containers\[0\]\.securityContext\.runAsUser: Invalid value: 0: container vmcp sets runAsNonRoot; use another user or also set runAsNonRoot to false/,
  ],
  [
    'root in a container of an MCPServer',
    inServer({ securityContext: { runAsUser: 0 } }),
    /containers\[0\]\.securityContext\.runAsUser: Invalid value: 0/,
  ],
  [
    'root in a sidecar, by the rule of its pod',
    inPod({ containers: [{ ...sidecar, securityContext: { runAsUser: 0 } }] }),
    /containers\[0\]\.securityContext\.runAsUser: Invalid value: 0: container sidecar/,
  ],
  [
    'root in the pod of an init container',
    inPod({ securityContext: { runAsUser: 0 }, initContainers: [{ ...sidecar, name: 'first' }] }),
    /spec\.securityContext\.runAsUser: Invalid value: 0: container first/,
  ],
]

for (const [what, manifest, message] of besideGenerated) {
  t.test(`admission and the condition report ${what}`, async (t) => {
    const { violations } = validateResource(manifest)
    t.equal(violations.length, 1)
    t.match(violations.map(({ path, message }) => `${path}: ${message}`)[0], message)
    const { kind, metadata } = manifest as ReturnType<typeof virtual>
    const w = world(manifest as ReturnType<typeof virtual>).settle()
    const { conditions } = untyped(w.get(kind, metadata.name)['status'])
    const type = kind === 'VirtualMCPServer' ? 'PodTemplateSpecValid' : 'PodTemplateValid'
    const condition = conditions.find((one: { type: string }) => one.type === type)
    t.match(condition, { status: 'False', reason: 'InvalidPodTemplateSpec' })
  })
}

t.test(
  'running as root is accepted if the template allows it, as are probes that replace the generated probe',
  async (t) => {
    for (const manifest of [
      inContainer({ securityContext: { runAsUser: 0, runAsNonRoot: false } }),
      inPod({ securityContext: { runAsUser: 0 } }),
      inPod({
        securityContext: { runAsNonRoot: false },
        containers: [{ ...sidecar, securityContext: { runAsUser: 0 } }],
      }),
      inServer({ readinessProbe: { tcpSocket: null, exec: { command: ['true'] } } }),
      inServer({ readinessProbe: execProbe }, { transport: 'stdio' }),
      inContainer({ env: [{ name: 'HOME', value: null, valueFrom: secret }] }),
      inPod({ containers: [{ ...sidecar, volumeMounts: [{ name: 'of-a-reference', mountPath: '/x' }] }] }),
    ])
      t.strictSame(validateResource(manifest).violations, [], JSON.stringify(manifest))
  },
)

/** Problems that appear only in combination with the complete generated template. */
const inSync: readonly [string, object, RegExp][] = [
  [
    'a mount without a volume',
    inContainer({ volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
    /volumeMounts\[\d+\]\.name Not found: "data"/,
  ],
  ['a volume of no kind', inPod({ volumes: [{ name: 'v' }] }), /Required value: must specify a volume type/],
]

for (const [what, manifest, message] of inSync) {
  t.test(`the condition reports ${what}, and the running objects stay`, async (t) => {
    t.strictSame(validateResource(manifest).violations, [], 'the manifest alone shows no problem')
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

t.test('templates that the API server accepts are accepted', async (t) => {
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
  t.strictSame(validateResource(vectors).violations, [], 'the generated container has its own image')
})

t.test('a pod template is compatible with the volume of a model cache', async (t) => {
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
