/** A decision point decides about the tools of features, which no catalog contains. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { startDecisionPoint } from '../../helpers/decisions/decision-point.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const features = {
  execute_tool_script: {
    settings: { codeMode: { enabled: true } },
    arguments: { script: 'return echo(text="a")' },
  },
  find_tool: { settings: { optimizer: {} }, arguments: { tool_description: 'echo' } },
}

for (const [name, { settings, arguments: given }] of Object.entries(features)) {
  t.test(`a decision point can allow and deny ${name}`, async (t) => {
    let isAllowed = true
    const [point, fixture] = await Promise.all([
      startDecisionPoint(() => isAllowed),
      startFixture({ era: 'both' }),
    ])
    const authz = {
      type: 'httpv1',
      httpv1: { http: { url: point.url }, claimMapping: 'standard' },
    }
    const vmcp = await startTestVmcp(
      { fixture: fixture.url },
      { aggregation: bareNames('fixture'), incomingAuth: { type: 'anonymous', authz }, ...settings },
    )
    t.teardown(() => Promise.all([vmcp.close(), fixture.close(), point.close()]))
    const call = (tool: string) => stateless(vmcp.url, 'tools/call', { name: tool, arguments: given })
    const allowed = await call(name)
    t.ok(allowed.response?.result, allowed.text)
    t.not(allowed.response?.result?.['isError'], true)
    isAllowed = false
    t.equal((await call(name)).response?.error?.code, 403)
  })
}
