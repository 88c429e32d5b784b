/**
 * Calls that features make for a client are counted: tool search, scripts, steps of workflows. No call is counted
 * twice.
 */
import t from 'tap'
import type { WireAnswer } from '../../helpers/mcp/wire.ts'
import { daily, quotaEras, refusalOf, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'

const flow = {
  name: 'flow',
  description: 'Calls two tools',
  parameters: { type: 'object' },
  steps: [
    { id: 'one', type: 'tool', tool: 'raw.echo', arguments: {} },
    { id: 'two', type: 'tool', tool: 'raw.costly', arguments: {}, dependsOn: ['one'] },
  ],
}

const isRefused = ({ text }: WireAnswer): boolean => text.includes('Quota exceeded')

for (const era of quotaEras) {
  t.test(`${era}: each step of a workflow counts, and the workflow does not`, async (t) => {
    const rig = await startQuotaRig(t, { quotas: [daily({ limit: 3 })], compositeTools: [flow] })
    const ada = await rig.as(era, 'ada')
    t.notOk(isRefused(await ada.call('flow')))
    const half = await ada.call('flow')
    t.match(half.text, /tool raw.costly: Quota exceeded: daily has 0 of 3 calls left until /)
    t.equal(rig.calls(), 3, 'the second step was not made, and not tried again')
    t.strictSame(await rig.audited(1), [[{ name: 'daily', enforced: true }]])
    t.match(refusalOf(await ada.call()), { quota: 'daily' }, 'the same budget')
  })

  t.test(`${era}: each call of a script counts, and the script does not`, async (t) => {
    const rig = await startQuotaRig(t, { quotas: [daily({ limit: 2 })], codeMode: { enabled: true } })
    const ada = await rig.as(era, 'ada')
    const run = (script: string) => ada.call('execute_tool_script', { script })
    t.notOk(isRefused(await run('return 1')))
    t.notOk(isRefused(await run('return [call_tool("echo"), call_tool("echo")]')))
    t.ok(isRefused(await run('return call_tool("echo")')))
    t.notOk(isRefused(await run('return 1')))
    t.equal(rig.calls(), 2)
  })

  t.test(`${era}: call_tool counts as the called tool, and find_tool does not count`, async (t) => {
    const rig = await startQuotaRig(t, { quotas: [daily({ limit: 1 })], optimizer: {} })
    const ada = await rig.as(era, 'ada')
    const meant = () => ada.call('call_tool', { tool_name: 'echo', parameters: {} })
    t.notOk(isRefused(await ada.call('find_tool', { tool_description: 'echo' })))
    t.notOk(isRefused(await meant()))
    t.match(refusalOf(await meant()), { quota: 'daily' })
    t.notOk(isRefused(await ada.call('find_tool', { tool_description: 'echo' })))
  })
}
