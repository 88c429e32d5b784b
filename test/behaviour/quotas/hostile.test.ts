/**
 * Quotas in unusual cases: calls that end late or never, backends that report invalid costs, budgets that change their
 * owner.
 */
import t from 'tap'
import { textResult } from '../../helpers/mcp/raw-backend.ts'
import { daily, leftIn, quotaEras, refusalOf, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'

type Rig = Awaited<ReturnType<typeof startQuotaRig>>

async function levels(rig: Rig): Promise<readonly string[]> {
  const { problem_details: problems } = JSON.parse(await rig.status()) as {
    problem_details: { type: string; message: string }[]
  }
  return problems.filter(({ type }) => type === 'quota_level').map(({ message }) => message)
}

/** Reserved names, in spellings with the same meaning. */
const believed = '[{"quota":"daily","remaining":1000000}]'
const forged = {
  plain: `"_meta":{"own":1e2,"gatehouse.dev/quota":${believed}}`,
  escaped: `"_m\\u0065ta":{"own":1e2,"\\u0067atehouse.dev\\/quota":${believed}}`,
  'other letters': `"_meta":{"own":1e2,"Gatehouse.dev/quota":${believed},"gatehouse.dev/other":1}`,
}

for (const era of quotaEras)
  for (const quotas of [undefined, [daily({ limit: 2 })]])
    t.test(
      `${era}: a backend cannot forge the remaining budget, ${quotas ? 'with' : 'without'} quotas`,
      async (t) => {
        let meta = ''
        const rig = await startQuotaRig(
          t,
          { quotas },
          {
            backend: {
              responses: { 'tools/call': () => `{"content":[],${meta},"other":1e2}` },
            },
          },
        )
        for (const [name, text] of Object.entries(forged)) {
          meta = text
          const caller = await rig.as(era, name.replace(' ', '-'))
          const first = await caller.call()
          t.equal(leftIn(first), undefined, name)
          t.notMatch(first.text, '1000000')
          t.match(first.text, '"own":1e2', 'the backend’s own members stay, byte for byte')
          t.match(first.text, '"other":1e2')
          if (!quotas) continue
          t.match(
            leftIn(await caller.call()),
            [{ quota: 'daily', remaining: 0 }],
            'the server’s own report is added',
          )
        }
        meta = `${forged.plain},${forged.escaped}`
        t.notMatch((await (await rig.as(era, 'twice')).call()).text, '1000000', 'two members of one name')
      },
    )

t.test('a refunded call leaves no problem behind', async (t) => {
  const rig = await startQuotaRig(t, { quotas: [daily({ limit: 1 })] })
  const ada = await rig.as('stateless', 'ada')
  await ada.request('tools/list', {})
  await rig.backend.close()
  t.equal(refusalOf(await ada.call()), undefined)
  t.strictSame(await levels(rig), [], 'no user has used anything')
  t.match(await rig.metrics(), 'gatehouse_quota_usage_ratio{server="test-vmcp",quota="daily",per="user"} 0')
})

t.test('a call that ends after its window reports nothing about the next window', async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const rig = await startQuotaRig(
    t,
    { quotas: [daily({ unit: 'resultBytes', limit: 100 })] },
    {
      start: '2026-11-23T23:59:30Z',
      backend: {
        responses: {
          'tools/call': async ({ body }) => {
            arrive()
            if (JSON.stringify(body).includes('"late"')) await released
            return textResult('x'.repeat(200))
          },
        },
      },
    },
  )
  const [ada, bob] = await Promise.all([rig.as('stateless', 'ada'), rig.as('stateless', 'bob')])
  const late = ada.call('echo', { late: true })
  await arrived
  rig.clock.moveTo('2026-11-24T00:00:10Z')
  await bob.call()
  const now = await levels(rig)
  t.match(now, [/daily is exhausted.*until 2026-11-25/])
  release()
  await late
  t.strictSame(await levels(rig), now, 'still the current window')
  t.match(await rig.metrics(), /gatehouse_quota_usage_ratio\{[^}]*\} [1-9]/)
})

for (const era of quotaEras) {
  t.test(`${era}: a quota that only warns is reported to operators only`, async (t) => {
    const rig = await startQuotaRig(t, { quotas: [daily({ limit: 1, action: 'warn' })] })
    const ada = await rig.as(era, 'ada')
    t.equal(leftIn(await ada.call()), undefined)
    t.equal(leftIn(await ada.call()), undefined)
    t.match(await levels(rig), [/is exhausted for at least one user until .*: calls are still allowed/])
  })

  t.test(`${era}: a rejection contains the cost of the call`, async (t) => {
    const rig = await startQuotaRig(t, {
      quotas: [daily({ unit: 'cost', limit: 100 })],
      costs: { raw: 60 },
    })
    const ada = await rig.as(era, 'ada')
    await ada.call()
    const refused = await ada.call()
    t.match(refusalOf(refused), { remaining: 40, needed: 60 })
    t.strictSame(await levels(rig), [], 'and the budget is not used up')
    t.match(refused.text, /daily has 40 of 100 cost left until [^,"]+, and the call needs 60/)
  })
}

t.test('a reported cost is read however the backend spells its name', async (t) => {
  const rig = await startQuotaRig(
    t,
    { quotas: [daily({ unit: 'cost', limit: 100 })], costs: { raw: 1 } },
    {
      backend: {
        responses: { 'tools/call': () => String.raw`{"content":[],"_meta":{"gatehouse.dev\/cost":100}}` },
      },
    },
  )
  const ada = await rig.as('stateless', 'ada')
  await ada.call()
  t.match(refusalOf(await ada.call()), { remaining: 0 })
})

t.test('a new owner of a budget starts at zero, even with the same name', async (t) => {
  const rig = await startQuotaRig(t, { quotas: [daily({ limit: 1 })] })
  const dev = await rig.as('stateless', 'dev')
  await dev.call()
  rig.reload({ quotas: [daily({ limit: 1, per: 'group' })] })
  const ada = await rig.as('stateless', 'ada', { groups: ['dev'] })
  t.equal(refusalOf(await ada.call()), undefined, 'the group dev is not the user dev')
  t.match(refusalOf(await ada.call()), { per: 'group' })
})
