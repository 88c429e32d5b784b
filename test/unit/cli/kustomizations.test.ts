/** A folder with a kustomization is a separate set of manifests. */
import t from 'tap'
import { referenceCheck, validateResource } from '../../../hooks/index.ts'
import { checkManifests } from '../../../runtime/toolkit/manifests/check.ts'
import { kustomizationSets } from '../../../runtime/toolkit/manifests/kustomizations.ts'
import { readManifests } from '../../../runtime/toolkit/manifests/read.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { group, server } from '../../hooks/resources.ts'

const named = (name: string, doc: object) =>
  JSON.stringify({ ...doc, metadata: { name, namespace: 'default' } })
const groupNamed = (name: string) => named(name, group)
const member = (name: string, of: string) => named(name, server(name, { groupRef: { name: of } }))

function found(paths: readonly string[]) {
  const checked = checkManifests(
    readManifests(paths, () => ''),
    {
      validate: validateResource,
      references: referenceCheck,
      setsOf: kustomizationSets(paths),
    },
  )
  return checked.flatMap(({ manifest, violations, warnings }) =>
    [...violations.map(({ message }) => message), ...warnings].map(
      (text) => `${manifest.file.split('/').slice(-2).join('/')}: ${text}`,
    ),
  )
}

const kustomization = (...resources: string[]) => JSON.stringify({ resources })

t.test('kustomizations: names collide only within a set', async (t) => {
  const folder = t.testdir({
    one: { 'kustomization.yaml': kustomization('a.yaml'), 'a.yaml': groupNamed('tools') },
    two: { Kustomization: kustomization('a.yaml'), sub: { 'a.yaml': groupNamed('tools') } },
  })
  t.same(found([folder]), [], 'nested under one -f')
  t.same(found([`${folder}/one`, `${folder}/two`]), [], 'several -f')
  const loose = t.testdir({
    'a.yaml': groupNamed('tools'),
    one: { 'kustomization.yaml': kustomization('a.yaml'), 'a.yaml': groupNamed('tools') },
  })
  t.match(
    found([loose]),
    [/^one\/a\.yaml: is already used/],
    'a file outside all kustomizations belongs to every set',
  )
  const twice = t.testdir({
    'kustomization.yaml': kustomization('one', 'two'),
    one: { 'kustomization.yaml': kustomization('a.yaml'), 'a.yaml': groupNamed('tools') },
    two: { 'kustomization.yaml': kustomization('a.yaml'), 'a.yaml': groupNamed('tools') },
  })
  t.match(found([twice]), [/^two\/a\.yaml: is already used/], 'one kustomization includes both')
})

t.test('kustomizations: references resolve to the same set and to files without a set', async (t) => {
  const folder = t.testdir({
    'shared.yaml': groupNamed('shared'),
    one: {
      'kustomization.yaml': kustomization('a.yaml'),
      'a.yaml': `${groupNamed('tools')}\n---\n${member('x', 'shared')}`,
    },
    two: { 'kustomization.yaml': kustomization('a.yaml'), 'a.yaml': member('x', 'tools') },
  })
  t.match(found([folder]), [/^two\/a\.yaml: MCPGroup "tools" is not among the given files/])
  t.match(found([`${folder}/one`, `${folder}/two`]), [
    /^one\/a\.yaml: MCPGroup "shared" is not among the given files/,
    /^two\/a\.yaml: .* MCPGroup "tools" is not among the given files; it must be on the cluster$/,
  ])
})

t.test('kustomizations: overlays share only their base', async (t) => {
  const overlay = (name: string) => ({
    'kustomization.yaml': kustomization('../../base', 'https://example.com/remote', 'a.yaml'),
    'a.yaml': `${member('x', 'tools')}\n---\n${groupNamed(name)}`,
  })
  const folder = t.testdir({
    base: { 'kustomization.yaml': kustomization('a.yaml'), 'a.yaml': groupNamed('tools') },
    overlays: { dev: overlay('more'), prod: overlay('more') },
  })
  t.same(found([folder]), [])
})

t.test('kustomizations: cycles and content of any shape are handled', async (t) => {
  const folder = t.testdir({
    one: { 'kustomization.yaml': kustomization('../two'), 'a.yaml': groupNamed('tools') },
    two: { 'kustomization.yaml': kustomization('../one'), 'a.yaml': groupNamed('tools') },
    three: { 'kustomization.yaml': '{resources: 5, bases: {a: 1}, components: [null, {}]}' },
  })
  t.match(found([folder]), [/is already used/])
})

t.test('kustomizations: the examples are valid together', async (t) => {
  const { code, stdout, stderr } = await runGatehouse(['validate', '-f', 'manifests/examples'])
  t.equal(code, 0, stderr)
  t.match(stdout, /^\d+ valid, 0 invalid/)
  t.match(stderr, /^note: \d+ Secrets and 1 ConfigMap are not in the input; their names were not checked$/m)
})
