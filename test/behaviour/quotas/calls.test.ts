/** Call quotas, over HTTP in both eras: budgets, windows, and calls that cost nothing. */
import t from 'tap'
import { daily, quotaEras, refusalOf, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'

for (const era of quotaEras) {
  t.test(`${era}: each user has a daily budget, and the rejection contains its end`, async (t) => {
    const rig = await startQuotaRig(t, { quotas: [daily()] }, { start: '2026-11-23T23:59:30Z' })
    const [ada, bob] = await Promise.all([rig.as(era, 'ada'), rig.as(era, 'bob')])
    t.equal(refusalOf(await ada.call()), undefined)
    t.equal(refusalOf(await ada.call('costly')), undefined)
    const refused = await ada.call()
    const data = {
      quota: 'daily',
      per: 'user',
      unit: 'calls',
      window: 'day',
      limit: 2,
      remaining: 0,
      resetsAt: '2026-11-24T00:00:00.000Z',
      retryAfterSeconds: 30,
    }
    const message = 'Quota exceeded: daily has 0 of 2 calls left until 2026-11-24T00:00:00.000Z'
    t.equal(refused.status, 200, 'client libraries repeat a bare 429 by themselves')
    if (era === 'stateless') t.strictSame(refused.response?.error, { code: 429, message, data })
    else
      t.strictSame(refused.response?.result, {
        content: [{ type: 'text', text: message }],
        structuredContent: { code: 429, message, data },
        isError: true,
      })
    t.equal(rig.calls(), 2, 'the backend got no request')
    t.equal(refusalOf(await bob.call()), undefined, 'another user has a separate budget')
    t.ok((await ada.request('tools/list', {})).response?.result?.['tools'], 'lists cost nothing')
    rig.clock.moveTo('2026-11-24T00:00:00Z')
    t.equal(refusalOf(await ada.call()), undefined, 'a new day')
  })

  t.test(`${era}: calls that are rejected for another reason, or never sent, cost nothing`, async (t) => {
    const rig = await startQuotaRig(t, {
      quotas: [daily({ limit: 1 })],
      authz: {
        type: 'cedar',
        policies: ['permit(principal, action, resource) unless { resource == Tool::"costly" };'],
      },
    })
    const ada = await rig.as(era, 'ada')
    for (let i = 0; i < 3; i++) {
      t.equal((await ada.call('costly')).response?.error?.code, 403)
      t.equal((await ada.call('no-such-tool')).response?.error?.code, -32602)
      t.equal(
        (await ada.request('tools/call', { name: 'echo', arguments: [] })).response?.error?.code,
        -32602,
      )
    }
    t.equal(refusalOf(await ada.call()), undefined, 'the only call is still available')
    t.match(refusalOf(await ada.call()), { quota: 'daily' })
  })

  t.test(`${era}: a call that does not reach its backend is refunded`, async (t) => {
    const rig = await startQuotaRig(t, { quotas: [daily({ limit: 1 })] })
    const ada = await rig.as(era, 'ada')
    await ada.request('tools/list', {})
    await rig.backend.close()
    for (let i = 0; i < 3; i++) {
      const { response } = await ada.call()
      t.match(JSON.stringify(response), /could not be reached/, 'and not rejected by the quota')
    }
  })
}

t.test('quotas can cover one tool, one backend or all calls', async (t) => {
  const rig = await startQuotaRig(t, {
    quotas: [
      daily({ name: 'costly-a-day', match: { backend: 'raw', tool: 'costly' }, limit: 1 }),
      daily({ name: 'raw-a-day', match: { backend: 'raw' }, limit: 3 }),
      daily({ name: 'elsewhere', match: { backend: 'other' }, limit: 1 }),
    ],
  })
  const ada = await rig.as('stateless', 'ada')
  t.equal(refusalOf(await ada.call('costly')), undefined)
  t.match(refusalOf(await ada.call('costly')), { quota: 'costly-a-day' })
  t.equal(refusalOf(await ada.call()), undefined)
  t.equal(refusalOf(await ada.call()), undefined, 'the rejected call cost nothing')
  t.match(refusalOf(await ada.call()), { quota: 'raw-a-day' })
})

t.test("a quota uses the backend's name of a tool, whatever name the client uses", async (t) => {
  const rig = await startQuotaRig(t, {
    quotas: [daily({ match: { tool: 'costly' }, limit: 1 })],
    aggregation: {
      conflictResolution: 'priority',
      conflictResolutionConfig: { priorityOrder: ['raw'] },
      tools: [{ workload: 'raw', overrides: { costly: { name: 'cheap' }, echo: { name: 'costly' } } }],
    },
  })
  const ada = await rig.as('stateless', 'ada')
  t.equal(refusalOf(await ada.call('cheap')), undefined)
  t.match(refusalOf(await ada.call('cheap')), { quota: 'daily' })
  t.equal(refusalOf(await ada.call('costly')), undefined, 'its original name is echo')
  t.equal(refusalOf(await ada.call('costly')), undefined)
})

t.test('groups: every group of the caller is counted, and the strictest quota applies', async (t) => {
  const rig = await startQuotaRig(t, { quotas: [daily({ per: 'group', limit: 3 })] })
  const [ada, bob, eve] = await Promise.all([
    rig.as('stateless', 'ada', { groups: ['dev', 'ops'] }),
    rig.as('stateless', 'bob', { groups: ['dev'] }),
    rig.as('stateless', 'eve'),
  ])
  t.equal(refusalOf(await ada.call()), undefined)
  t.equal(refusalOf(await bob.call()), undefined)
  t.equal(refusalOf(await bob.call()), undefined)
  t.match(refusalOf(await ada.call()), { quota: 'daily', remaining: 0 }, 'dev has used all, ops has not')
  const ops = await rig.as('stateless', 'joe', { groups: ['ops'] })
  t.equal(refusalOf(await ops.call()), undefined)
  t.equal(refusalOf(await ops.call()), undefined, 'the rejected call cost ops nothing')
  t.ok(refusalOf(await ops.call()))
  for (let i = 0; i < 3; i++) t.equal(refusalOf(await eve.call()), undefined)
  const max = await rig.as('stateless', 'max')
  t.ok(refusalOf(await max.call()), 'users without a group share a budget')
})

t.test('clients are identified by client_id or azp, and a quota can cover the whole server', async (t) => {
  const rig = await startQuotaRig(t, {
    quotas: [
      daily({ name: 'a-client', per: 'client', limit: 1 }),
      daily({ name: 'everybody', per: 'server', limit: 3 }),
    ],
  })
  const as = (subject: string, claims: Record<string, unknown>) => rig.as('stateless', subject, claims)
  const [one, same, other, third, fourth] = await Promise.all([
    as('ada', { client_id: 'editor' }),
    as('bob', { client_id: 'editor' }),
    as('ada', { azp: 'chat' }),
    as('ada', { client_id: 'cli' }),
    as('ada', { client_id: 'more' }),
  ])
  t.equal(refusalOf(await one.call()), undefined)
  t.match(refusalOf(await same.call()), { quota: 'a-client' })
  t.equal(refusalOf(await other.call()), undefined)
  t.equal(refusalOf(await third.call()), undefined)
  t.match(refusalOf(await fourth.call()), { quota: 'everybody', per: 'server' })
})

t.test('action warn: calls continue', async (t) => {
  const rig = await startQuotaRig(t, { quotas: [daily({ limit: 1, action: 'warn' })] })
  const ada = await rig.as('session', 'ada')
  for (let i = 0; i < 3; i++) t.equal(refusalOf(await ada.call()), undefined)
  t.equal(rig.calls(), 3)
})

t.test('a changed configuration keeps the counters, and without quotas nothing is counted', async (t) => {
  const rig = await startQuotaRig(t, { quotas: [daily()] })
  const ada = await rig.as('session', 'ada')
  await ada.call()
  await ada.call()
  rig.reload({ quotas: [daily({ limit: 3 })] })
  t.equal(refusalOf(await ada.call()), undefined, 'one more')
  t.match(refusalOf(await ada.call()), { limit: 3 })
  rig.reload({})
  t.equal(refusalOf(await ada.call()), undefined)
  rig.reload({ quotas: [daily({ limit: 4 })] })
  t.equal(refusalOf(await ada.call()), undefined)
  t.match(refusalOf(await ada.call()), { limit: 4 })
})
