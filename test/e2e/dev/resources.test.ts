/** Tests the lines that `gatehouse dev` prints for each resource: state, reason and next step, one line per change. */
import t from 'tap'
import { group, manifest, server, startDev, virtualServer } from '../../helpers/dev-rig.ts'

const stdio = {
  transport: 'stdio',
  podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
}
const echo = server('echo', 'node test/helpers/clients/argv-server.ts', stdio)
const oidc = manifest('MCPOIDCConfig', 'login', {
  type: 'inline',
  inline: { issuer: 'https://idp.example.com' },
})
const entry = manifest('MCPServerEntry', 'remote', {
  groupRef: { name: 'g' },
  remoteUrl: 'https://mcp.invalid/mcp',
  transport: 'streamable-http',
})

await t.test(
  'dev: prints the state of each resource, with reason and next step for broken references',
  async (t) => {
    const { dev } = await startDev(t, [
      group(),
      group('lonely'),
      oidc,
      entry,
      echo,
      server('lost', 'sleep 1000', { groupRef: { name: 'nowhere' } }),
      server('guarded', 'sleep 1000', { oidcConfigRef: { name: 'missing', audience: 'x' } }),
      virtualServer(),
      virtualServer('empty', 'gone'),
      JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'foreign' }, spec: {} }),
    ])
    const lines = [
      /^MCPGroup g: ready: 3 members$/m,
      /^MCPGroup lonely: unused: the group has no members; add a server with spec\.groupRef\.name: lonely$/m,
      /^MCPOIDCConfig login: unused: no resource refers to it$/m,
      /^MCPServer echo: ready on 127\.0\.0\.1:\d+$/m,
      /^MCPServer lost: failed: MCPGroup nowhere does not exist \(GroupRefNotFound\); declare the resource/m,
      /^MCPServer guarded: failed: MCPOIDCConfig missing does not exist \(OIDCConfigRefNotFound\); declare the resource/m,
      /^VirtualMCPServer v: ready on 127\.0\.0\.1:\d+$/m,
      /^VirtualMCPServer empty: failed: MCPGroup gone does not exist \(GroupRefNotFound\); declare the resource/m,
      /^Deployment foreign: not run: only gatehouse\.dev resources run here$/m,
      /^MCPServerEntry remote: failed: VirtualMCPServer v cannot use it: /m,
    ]
    for (const line of lines) t.ok(await dev.waitFor(line), String(line))
  },
)

await t.test(
  'dev: prints one line for an invalid edit, its repair, a removed and a repaired resource',
  async (t) => {
    const { dev, write } = await startDev(t, [group(), echo, virtualServer()])
    await dev.waitFor(/^v: backends: echo$/m)
    write(group(), echo.replace('"stdio"', '"studio"'), virtualServer())
    await dev.waitFor(
      /^the latest edit was not applied:\n.*manifests\.yaml:\d+: MCPServer\/echo: spec\.transport/m,
    )
    write(group(), echo, virtualServer())
    await dev.waitFor(/^the problems are fixed; edits take effect again$/m)
    write(group(), virtualServer('v', 'other'), echo)
    await dev.waitFor(/^edit applied at \d\d:\d\d:\d\d: VirtualMCPServer v$/m)
    await dev.waitFor(
      /^VirtualMCPServer v: failed: MCPGroup other does not exist .*; the previous version is still running on 127/m,
    )
    const before = dev.output().length
    write(group(), virtualServer())
    await dev.waitFor(/^MCPServer echo removed$/m)
    await dev.waitFor(/^MCPGroup g: unused: /m)
    const after = dev.output().slice(before)
    t.match(after, /^VirtualMCPServer v: ready on /m, 'the repaired reference')
    t.equal(after.match(/echo removed/g)?.length, 1)
  },
)
