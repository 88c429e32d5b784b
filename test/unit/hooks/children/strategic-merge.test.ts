import t from 'tap'
import { strategicMerge } from '../../../../hooks/children/strategic-merge.ts'

const base = {
  metadata: { labels: { app: 'x' } },
  spec: {
    containers: [
      {
        name: 'vmcp',
        image: 'a',
        env: [{ name: 'A', value: '1' }],
        ports: [{ containerPort: 4483, name: 'http', protocol: 'TCP' }],
        volumeMounts: [{ name: 'config', mountPath: '/etc/config' }],
      },
    ],
    volumes: [{ name: 'config', configMap: { name: 'c' } }],
    tolerations: [{ key: 'a' }],
  },
}

t.test('strategicMerge: containers, env, mounts, volumes and ports merge by their keys', async (t) => {
  const merged = strategicMerge(base, {
    spec: {
      containers: [
        {
          name: 'vmcp',
          resources: { limits: { cpu: '2' } },
          env: [
            { name: 'A', value: '2' },
            { name: 'B', value: '3' },
          ],
          ports: [
            { containerPort: 4483, hostPort: 80 },
            { containerPort: 4483, protocol: 'UDP', name: 'udp' },
          ],
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
        },
        { name: 'sidecar', image: 'b' },
      ],
      volumes: [{ name: 'tmp', emptyDir: {} }],
      tolerations: [{ key: 'b' }],
    },
  })
  t.strictSame(merged, {
    metadata: { labels: { app: 'x' } },
    spec: {
      containers: [
        {
          name: 'vmcp',
          image: 'a',
          env: [
            { name: 'A', value: '2' },
            { name: 'B', value: '3' },
          ],
          ports: [
            { containerPort: 4483, name: 'http', protocol: 'TCP', hostPort: 80 },
            { containerPort: 4483, protocol: 'UDP', name: 'udp' },
          ],
          volumeMounts: [
            { name: 'config', mountPath: '/etc/config' },
            { name: 'tmp', mountPath: '/tmp' },
          ],
          resources: { limits: { cpu: '2' } },
        },
        { name: 'sidecar', image: 'b' },
      ],
      volumes: [
        { name: 'config', configMap: { name: 'c' } },
        { name: 'tmp', emptyDir: {} },
      ],
      tolerations: [{ key: 'b' }],
    },
  })
})

t.test('strategicMerge: null and $patch: delete remove members', async (t) => {
  const merged = strategicMerge(base, {
    metadata: { labels: { app: null } },
    spec: {
      tolerations: null,
      volumes: [{ name: 'config', $patch: 'delete' }],
      containers: [{ name: 'vmcp', env: [{ name: 'A', $patch: 'delete' }], image: null }],
    },
  })
  const container = (merged['spec'] as { containers: Record<string, unknown>[] }).containers[0]
  t.notOk('volumes' in (merged['spec'] as object), 'an emptied list is left out')
  t.notOk('tolerations' in (merged['spec'] as object))
  t.notOk(container && 'env' in container)
  t.notOk(container && 'image' in container)
  t.strictSame(merged['metadata'], { labels: {} })
})

t.test('strategicMerge: $patch: replace replaces the whole object or list', async (t) => {
  const merged = strategicMerge(base, {
    metadata: { $patch: 'replace', annotations: { a: 'b' } },
    spec: { containers: [{ $patch: 'replace' }, { name: 'only', image: 'z', env: null }] },
  })
  t.strictSame(merged['metadata'], { annotations: { a: 'b' } })
  t.strictSame((merged['spec'] as { containers: unknown }).containers, [{ name: 'only', image: 'z' }])
})

t.test('strategicMerge: inputs are not modified, and __proto__ is an ordinary key', async (t) => {
  const before = structuredClone(base)
  const merged = strategicMerge(base, JSON.parse('{"__proto__":{"polluted":true},"spec":{"a":1}}'))
  t.strictSame(base, before)
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
  t.ok(Object.hasOwn(merged, '__proto__'))
})

t.test(
  'strategicMerge: a list under the name of an Object.prototype member is replaced like any other list',
  async (t) => {
    const merged = strategicMerge(
      { constructor: [{ a: 1 }] },
      { constructor: [{ b: 2 }], toString: [{ c: 3 }] },
    )
    // Compare as text: a comparison of objects would read their constructor.
    t.equal(JSON.stringify(merged), '{"constructor":[{"b":2}],"toString":[{"c":3}]}')
  },
)

t.test('strategicMerge: excessive nesting does not overflow the stack', async (t) => {
  let deep: Record<string, unknown> = {}
  let other: Record<string, unknown> = {}
  for (let i = 0; i < 5000; i++) {
    deep = { a: deep }
    other = { a: other }
  }
  t.doesNotThrow(() => strategicMerge(deep, other))
})
