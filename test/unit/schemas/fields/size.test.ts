/** The size of documents is limited before validation, and so is the list of errors. */
import t from 'tap'
import { validateManifest, validateRuntime } from '../../../../schemas/index.ts'

const server = (spec: unknown, metadata: object = {}) => ({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'MCPServer',
  metadata: { name: 'files', namespace: 'team', ...metadata },
  spec: { image: 'registry.example.com/files:1', transport: 'streamable-http', ...(spec as object) },
})
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const members = (count: number) => Object.fromEntries(times(count, (i) => [`k${i}`, 'x']))
function deep(levels: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { a: value }
  return value
}

t.test('size: an oversized manifest is rejected with one line', async (t) => {
  for (const [spec, expected] of [
    [{ env: times(2001, () => ({})) }, { path: 'spec.env', message: /^has 2001 items; at most 2000/ }],
    [{ resources: { limits: members(3000) } }, { path: 'spec.resources.limits', message: /3000 members/ }],
    [
      { podTemplateSpec: times(20, () => times(1900, () => 1)) },
      { path: '', message: /more than 20000 values/ },
    ],
    [{ image: 'x'.repeat(1_600_000) }, { path: '', message: /more than 1500000 characters/ }],
    [{ podTemplateSpec: deep(300) }, { path: '', message: /nested more than 200 levels/ }],
  ] as const) {
    const violations = validateManifest(server(spec))
    t.equal(violations.length, 1)
    t.match(violations[0], expected)
  }
  const entries = times(1900, (i) => [members(10), i])
  t.strictSame(
    validateManifest(server({}, { managedFields: entries })),
    [],
    'fields that only the API server writes do not count',
  )
})

t.test('size: a list of very many errors is cut after a thousand, with a note', async (t) => {
  const violations = validateManifest(server({ env: times(1900, () => ({})) }))
  t.equal(violations.length, 1001)
  t.match(violations[0], { path: '', message: 'has more than 1000 errors; further errors are not shown' })
})

t.test('size: files of the runtime may be larger', async (t) => {
  const problems = (doc: unknown) => validateRuntime('vmcp', doc).violations
  t.notMatch(problems({ backends: times(3000, () => ({})) }), [{ message: /at most/ }])
  t.match(problems({ backends: times(5001, () => ({})) }), [
    { path: 'backends', message: /^has 5001 items; at most 5000/ },
  ])
})
