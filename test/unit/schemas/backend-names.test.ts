/** Settings with unknown backend names: each is reported with its path and a suggestion. */
import t from 'tap'
import { unknownBackends } from '../../../schemas/index.ts'

const settings = (name: string) => ({
  outgoingAuth: { backends: { [name]: { type: 'unauthenticated' } } },
  aggregation: {
    conflictResolutionConfig: { priorityOrder: ['files', name] },
    tools: [{ workload: 'files' }, { workload: name }],
  },
  operational: { timeouts: { perWorkload: { [name]: '5s' } } },
  extensions: { custom: [{ backend: 'files' }, { backend: name }] },
})

await t.test('backend names: every field that names a backend is checked', async (t) => {
  const similar = 'notes'
  const message = 'unknown backend "ntoes"; did you mean "notes"?'
  t.same(unknownBackends(settings('ntoes'), ['files', 'notes']), [
    { path: 'outgoingAuth.backends.ntoes', message, similar },
    { path: 'aggregation.conflictResolutionConfig.priorityOrder[1]', message, similar },
    { path: 'aggregation.tools[1].workload', message, similar },
    { path: 'operational.timeouts.perWorkload.ntoes', message, similar },
    { path: 'extensions.custom[1].backend', message, similar },
  ])
  t.same(unknownBackends(settings('notes'), new Set(['files', 'notes'])), [])
})

await t.test(
  'backend names: paths start with the parent, and only a similar name is suggested',
  async (t) => {
    t.same(unknownBackends({ outgoingAuth: { backends: { zzz: {} } } }, ['files'], 'spec'), [
      { path: 'spec.outgoingAuth.backends.zzz', message: 'unknown backend "zzz"' },
    ])
  },
)

await t.test('backend names: invalid settings cause no exception', async (t) => {
  for (const value of [
    undefined,
    null,
    1,
    'x',
    [],
    { backends: 1, tools: {}, timeouts: [] },
    { tools: [null, 1, {}] },
  ]) {
    t.same(unknownBackends({ outgoingAuth: value, aggregation: value, operational: value }, []), [])
  }
})

await t.test('backend names: names of Object.prototype members are ordinary names', async (t) => {
  t.same(unknownBackends(settings('constructor'), ['files']).length, 5)
})

await t.test(
  'backend names: the list of unknown names is bounded and ends with the number of further names',
  async (t) => {
    const priorityOrder = Array.from({ length: 1000 }, (_, i) => `${'x'.repeat(50)}${i}`)
    const known = Array.from({ length: 1000 }, (_, i) => `${'x'.repeat(45)}y${i}`)
    const found = unknownBackends({ aggregation: { conflictResolutionConfig: { priorityOrder } } }, known)
    t.equal(found.length, 51)
    t.same(found.at(-1), { path: '', message: '950 more names match no backend' })
  },
)

await t.test('backend names: webhooks in the settings and in a separate document', async (t) => {
  const webhooks = {
    mutating: [{ name: 'm', match: { backends: ['notes', 'ntoes'] } }],
    validating: [{ name: 'v' }, { name: 'w', match: { backends: ['x'] } }],
  }
  const said = (settings: Parameters<typeof unknownBackends>[0]) =>
    unknownBackends(settings, ['notes']).map(({ path, message }) => `${path}: ${message}`)
  t.same(said({ webhooks }), [
    'webhooks.mutating[0].match.backends[1]: unknown backend "ntoes"; did you mean "notes"?',
    'webhooks.validating[1].match.backends[0]: unknown backend "x"',
  ])
  t.same(said({ webhookConfig: { path: 'spec.ref', title: 'Config c', webhooks } }), [
    'spec.ref: Config c: spec.mutating[0].match.backends[1]: unknown backend "ntoes"; did you mean "notes"?',
    'spec.ref: Config c: spec.validating[1].match.backends[0]: unknown backend "x"',
  ])
})
