/** Policies for unknown backends and tools. A forbid with a misspelled name has no effect, so it is reported. */
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { until } from '../../helpers/redis.ts'
import { startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const kind = (name: string, metadata: string, spec: object): string =>
  JSON.stringify({ apiVersion: 'gatehouse.dev/v1beta1', kind: name, metadata: { name: metadata }, spec })
const permit = 'permit(principal, action, resource);'
const forbid = 'forbid(principal, action, resource in Backend::"githbu");'

t.test('validate: a misspelled backend causes a warning with a suggestion', async (t) => {
  const entry = {
    groupRef: { name: 'g' },
    remoteUrl: 'https://github.example.com/mcp',
    transport: 'streamable-http',
  }
  const inline = { policies: [permit, forbid], shadowPolicies: [forbid] }
  const file = join(t.testdir({}), 'manifests.yaml')
  writeFileSync(
    file,
    [
      kind('MCPGroup', 'g', {}),
      kind('MCPServerEntry', 'github', entry),
      kind('VirtualMCPServer', 'v', {
        groupRef: { name: 'g' },
        incomingAuth: { type: 'anonymous', authzConfig: { type: 'inline', inline } },
      }),
    ].join('\n---\n'),
  )
  const { code, stderr } = await runGatehouse(['validate', '-f', file])
  t.equal(code, 0, stderr)
  for (const place of ['policies[1]', 'shadowPolicies[0]'])
    t.match(
      stderr,
      `spec.incomingAuth.authzConfig.inline.${place}: unknown backend "githbu"; did you mean "github"?`,
    )
  t.notMatch(stderr, 'inline.policies[0]')
})

const authz = (...policies: readonly string[]) => ({
  incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: [permit, ...policies] } },
})

t.test('vmcp validate: an unknown name is a warning, like other unknown backend names', async (t) => {
  const file = join(t.testdir({}), 'v.yaml')
  const backends = [{ name: 'github', url: 'https://github.example.com/mcp', transport: 'streamable-http' }]
  const common = {
    name: 'v',
    groupRef: 'g',
    outgoingAuth: { source: 'inline' },
    aggregation: { conflictResolution: 'prefix' },
    backends,
  }
  writeFileSync(file, JSON.stringify({ ...common, ...authz(forbid) }))
  const { code, stderr } = await runGatehouse(['vmcp', 'validate', '-c', file])
  t.equal(code, 0)
  t.match(stderr, 'warning: incomingAuth.authz.policies[1]: unknown backend "githbu"; did you mean "github"?')
})

t.test(
  'a running server reports tools that their backend does not offer, until it offers them',
  async (t) => {
    const names = ['search']
    const backend = await startRawBackend({
      tools: () => names.map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
    })
    const urls = { github: backend.url }
    const about = (tool: string) => `forbid(principal, action, resource in BackendTool::"${tool}");`
    const shared = authz(about('github/serach'), about('github/search'), about('elsewhere/x'))
    const vmcp = await startTestVmcp(urls, shared)
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const problems = async () =>
      (
        (await (await fetch(`${vmcp.origin}/status`)).json()) as {
          problem_details: { type: string; message: string }[]
        }
      ).problem_details
        .filter(({ type }) => type === 'tool_unmatched' || type === 'backend_name_unknown')
        .map(({ message }) => message)
    await stateless(vmcp.url, 'tools/list')
    await until(async () => (await problems()).length > 0)
    t.same(await problems(), [
      'incomingAuth.authz.policies[1]: backend github does not offer a tool "serach"',
    ])
    vmcp.reload(vmcpConfig(urls, authz(about('github/search'))))
    await until(async () => (await problems()).length === 0)
  },
)
