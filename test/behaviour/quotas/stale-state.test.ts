/** A retry whose state comes from another backend is rejected before quotas are checked. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { daily } from '../../helpers/vmcp/quota-rig.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.test('the state of a replaced backend is rejected, even if no quota is left', async (t) => {
  const [first, second] = await Promise.all([
    startFixture({ era: 'stateless' }),
    startFixture({ era: 'stateless' }),
  ])
  const settings = { aggregation: bareNames('fixture'), quotas: [daily({ per: 'server', limit: 1 })] }
  const vmcp = await startTestVmcp({ fixture: first.url }, settings)
  t.teardown(() => Promise.all([vmcp.close(), first.close(), second.close()]))
  const call = { name: 'test_input_required_result_request_state', arguments: {} }
  const capabilities = { elicitation: {} }
  const asked = await stateless(vmcp.url, 'tools/call', call, { capabilities })
  const result = asked.response?.result as {
    readonly requestState: string
    readonly inputRequests: Readonly<Record<string, unknown>>
  }
  const reply = { action: 'accept', content: { ok: true } }
  const retry = {
    ...call,
    requestState: result.requestState,
    inputResponses: Object.fromEntries(Object.keys(result.inputRequests).map((key) => [key, reply])),
  }
  vmcp.reload(vmcpConfig({ fixture: second.url }, settings))
  const stale = await stateless(vmcp.url, 'tools/call', retry, { capabilities })
  t.match(stale, { status: 400, response: { error: { code: -32602 } } })
})
