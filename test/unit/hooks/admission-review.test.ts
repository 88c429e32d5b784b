/** POST /validate: the response to an AdmissionReview, and the operations that are not checked. */
import t from 'tap'
import { hookSettings, makeHooks, reviewAdmission } from '../../../hooks/index.ts'
import { auth, server } from '../../hooks/resources.ts'
import { testSettings } from '../../hooks/world.ts'

const registry = makeHooks(testSettings)
const review = (request: object) =>
  reviewAdmission(registry, {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u-1', ...request },
  })
const bad = server('s', { env: [{ name: 'A', value: '1' }], secrets: [{ name: 'x', key: 'A' }] })
const kind = { kind: { group: 'gatehouse.dev', version: 'v1beta1', kind: 'MCPServer' } }

t.test('review: the response contains the uid, status 422 and every error', async (t) => {
  t.strictSame(review({ ...kind, operation: 'CREATE', object: server('s') }).review, {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: 'u-1', allowed: true },
  })
  const { response } = review({ ...kind, operation: 'CREATE', object: bad }).review
  t.match(response, {
    uid: 'u-1',
    allowed: false,
    status: { code: 422, reason: 'Invalid', message: /spec\.secrets\[0\]\.key/ },
  })
})

t.test('review: objects being deleted and unchanged specs are allowed', async (t) => {
  const update = (object: object, oldObject: object) =>
    review({ ...kind, operation: 'UPDATE', object, oldObject }).review.response.allowed
  t.equal(update(bad, server('s')), false)
  t.equal(update({ ...bad, metadata: { ...bad.metadata, finalizers: [] } }, bad), true, 'the same spec')
  t.equal(
    update({ ...bad, metadata: { ...bad.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }, server('s')),
    true,
  )
})

t.test(
  'review: deleting an object in use is denied with the names of its users, unless it is marked',
  async (t) => {
    const used = (metadata: object = {}) => ({
      ...auth.bearer,
      metadata: { ...auth.bearer.metadata, ...metadata },
      status: {
        referenceCount: 3,
        referencingWorkloads: [
          { kind: 'MCPServer', name: 'files' },
          { kind: 'VirtualMCPServer', name: 'door' },
        ],
      },
    })
    const remove = (oldObject: object) =>
      review({ operation: 'DELETE', object: null, oldObject }).review.response
    t.match(remove(used()), {
      allowed: false,
      status: {
        message: /MCPServer files, VirtualMCPServer door, 1 other resources.*gatehouse\.dev\/allow-delete/,
      },
    })
    t.equal(remove(used({ annotations: { 'gatehouse.dev/allow-delete': 'true' } })).allowed, true)
    t.equal(remove(used({ annotations: { 'gatehouse.dev/allow-delete': 'yes' } })).allowed, false)
    t.equal(remove(used({ deletionTimestamp: '2026-01-01T00:00:00Z' })).allowed, true)
    t.equal(remove({ ...auth.bearer, status: { referenceCount: 0, referencingWorkloads: [] } }).allowed, true)
    t.equal(remove(auth.bearer).allowed, true, 'the members have not been checked yet')
  },
)

t.test('review: deleting a group with members is allowed with a warning', async (t) => {
  const group = (members: object) => ({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPGroup',
    metadata: { name: 'team', namespace: 'default' },
    status: { servers: [], remoteProxies: [], entries: [], ...members },
  })
  const remove = (oldObject: object) =>
    review({ operation: 'DELETE', object: null, oldObject }).review.response
  const { allowed, warnings = [] } = remove(group({ servers: ['a', 'b'], entries: ['c'] }))
  t.equal(allowed, true)
  t.match(warnings, [/^3 members remain; .* GroupRefNotFound/])
  t.ok((warnings[0] ?? '').length <= 120)
  t.strictSame(remove(group({})), { uid: 'u-1', allowed: true }, 'an empty group causes no warning')
  t.equal(remove(group({ servers: 'odd', entries: null })).allowed, true)
})

t.test('review: subresources and other operations are allowed without checks', async (t) => {
  t.equal(review({ operation: 'UPDATE', subResource: 'status', object: bad }).review.response.allowed, true)
  t.equal(review({ operation: 'CONNECT' }).review.response.allowed, true)
})

t.test('review: a body that is not an AdmissionReview is rejected', async (t) => {
  for (const body of [
    undefined,
    null,
    1,
    [],
    {},
    { kind: 'AdmissionReview' },
    { kind: 'AdmissionReview', request: {} },
    { kind: 'AdmissionReview', request: { uid: '' } },
  ]) {
    t.throws(() => reviewAdmission({ settings: hookSettings({ runtimeImage: 'i', version: '1' }) }, body), {
      code: 'BAD_REQUEST',
    })
  }
  t.match(review({ operation: 'CREATE', object: { kind: 'Pod' } }).review.response, { allowed: false })
  t.match(review({ operation: 'CREATE', object: null }).review.response, { allowed: false })
})

t.test('review: an overlong message is truncated', async (t) => {
  const secrets = Array.from({ length: 200 }, (_, i) => ({
    name: `s${i}`,
    key: `K${i}`,
    targetEnvName: 'SAME',
  }))
  const { response } = review({ operation: 'CREATE', object: server('s', { secrets }) }).review
  t.ok((response.status?.message.length ?? 0) <= 8000)
})
