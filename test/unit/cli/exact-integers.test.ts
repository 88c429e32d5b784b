/** Copies of manifests keep the digits of integers that a double would round. */
import t from 'tap'
import { applyChild } from '../../../runtime/toolkit/local/cluster/apply.ts'
import { LocalCluster } from '../../../runtime/toolkit/local/cluster/cluster.ts'
import type { LocalObject } from '../../../runtime/toolkit/manifests/objects.ts'
import { editText } from '../../../runtime/tools/lock/approval/edit.ts'
import { readYaml } from '../../../runtime/config/index.ts'
import { migrate } from '../../../runtime/tools/migration/convert.ts'

const long = '9007199254740993'

function read(text: string): LocalObject {
  return readYaml(text).documents[0]?.value as LocalObject
}

const map = `{ apiVersion: v1, kind: ConfigMap, metadata: { name: a }, data: { x: ${long}, list: [${long}, { z: ${long} }] } }`
const data = `{"x":${long},"list":[${long},{"z":${long}}]}`

t.test('a child of the local cluster', async (t) => {
  const created = applyChild(undefined, read(map))
  t.equal(JSON.stringify(created['data']), data)
  t.equal(JSON.stringify(applyChild(created, read(map))['data']), data)
})

t.test('objects that the local cluster passes to a hook', async (t) => {
  let seen = ''
  const hook = {
    childKinds: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
    customize: () => ({ relatedResources: [] }),
    sync: (request: unknown) => {
      seen = JSON.stringify(request)
      return { children: [read(map)] }
    },
  }
  const hooks = { byKind: (kind: string) => (kind === 'Parent' ? hook : undefined) }
  const cluster = new LocalCluster(hooks, () => new Date(0))
  cluster.declare([read(`{ apiVersion: x/v1, kind: Parent, metadata: { name: p }, spec: { big: ${long} } }`)])
  cluster.reconcile()
  cluster.reconcile()
  t.match(seen, `"spec":{"big":${long}}`)
  t.match(seen, `"data":${data}`, 'its own child')
})

t.test('a converted manifest', async (t) => {
  const doc = read(
    `{ apiVersion: toolhive.stacklok.dev/v1alpha1, kind: MCPServer, metadata: { name: a, annotations: { x: ${long} } }, spec: { image: x/y:1 } }`,
  )
  const { documents } = migrate([{ doc: { ...doc }, file: 'f.yaml', lineOf: () => 1 }], {
    violationsOf: () => [],
    tools: new Map(),
  })
  t.match(documents, [{ file: 'f.yaml' }])
})

t.test('a file in which a lock is changed', async (t) => {
  const lock = '{"kind":"MCPToolLock","spec":{"tools":[]}}'
  const text = `{"kind":"List","items":[{"kind":"ConfigMap","data":${data}},${lock}]}`
  const place = { document: 0, path: ['items', 1], manifest: {} }
  const next = editText('f.json', text, place, { do: 'set', path: ['spec', 'tools'], value: ['a'] })
  t.equal(next.replaceAll(/\s/g, ''), text.replace('[]', '["a"]'))
})
