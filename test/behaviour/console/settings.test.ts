/** spec.config.console: rejected settings, and the result of the hooks. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { formatViolations } from '../../../schemas/index.ts'
import { startWarnings } from '../../../runtime/vmcp/index.ts'
import { startTestConsole } from '../../helpers/console/console.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const good = {
  enabled: true,
  publicUrl: 'https://console.example',
  auth: { type: 'oidc', issuer: 'https://issuer.example', clientId: 'console' },
  roles: [{ role: 'viewer', claim: 'groups', values: ['team'] }],
}

const refused: readonly [string, Record<string, unknown>, RegExp][] = [
  ['without a login', { ...good, auth: undefined }, /auth is required/],
  ['without roles', { ...good, roles: [] }, /roles must grant/],
  [
    'with roles and policies',
    { ...good, authz: { policies: ['permit(principal, action, resource);'] } },
    /authz cannot be combined with roles/,
  ],
  ['with no policy', { ...good, roles: undefined, authz: { policies: [] } }, /policies/],
  ['without an address', { ...good, publicUrl: undefined }, /publicUrl is required/],
  [
    'http in public',
    { ...good, publicUrl: 'http://console.example' },
    /must be https, unless it is a loopback/,
  ],
  ['a URL with a path', { ...good, publicUrl: 'https://console.example/x' }, /publicUrl/],
  ['without openid', { ...good, auth: { ...good.auth, scopes: ['email'] } }, /scopes must contain openid/],
  ['http at the issuer', { ...good, auth: { ...good.auth, issuer: 'http://issuer.example' } }, /issuer/],
]

function refusals(console: unknown): string {
  const { violations } = validateResource({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'VirtualMCPServer',
    metadata: { name: 'team', namespace: 'default' },
    spec: { groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' }, config: { console } },
  })
  return formatViolations(violations)
}

for (const [what, console, message] of refused) {
  t.test(`a console ${what} is rejected, in the file and at admission`, async (t) => {
    const given: unknown = JSON.parse(JSON.stringify(console))
    t.throws(() => vmcpConfig({}, { console: given }), { message })
    t.match(refusals(given), message)
  })
}

t.test('a valid console is accepted with its defaults', async (t) => {
  t.equal(refusals(good), '')
  t.match(vmcpConfig({}, { console: good }).console, {
    port: 4484,
    auth: { scopes: ['openid', 'profile', 'email'] },
  })
  t.equal(refusals({ enabled: false }), '')
  t.equal(refusals({ ...good, publicUrl: 'http://127.0.0.1:4484' }), '')
})

t.test(
  'policies instead of roles are accepted, and invalid ones are rejected before anything starts',
  async (t) => {
    const policies = [
      'permit(principal in ServiceGroup::"a", action == Action::"console:view", resource == Console::"team");',
    ]
    const byPolicies = { ...good, roles: undefined, authz: { policies } }
    t.equal(refusals(byPolicies), '')
    t.match(vmcpConfig({}, { console: byPolicies }).console, { authz: { groupEntityType: 'ServiceGroup' } })
    const unreadable = { ...byPolicies, authz: { policies: ['permit(', 'forbid('], entitiesJson: '{' } }
    for (const message of [/authz\.policies\[0\]: /, /authz\.policies\[1\]: /, /authz\.entitiesJson: /]) {
      t.match(refusals(unreadable), message, 'all errors at once')
      await t.rejects(startTestConsole({}, { console: unreadable }), { message })
    }
  },
)

t.test("an issuer that differs from the server's issuer causes a warning with the consequence", async (t) => {
  const oidc = (issuer: string) => ({
    incomingAuth: {
      type: 'oidc',
      oidc: { issuer, audience: 'a', clientId: 'c', resource: 'https://mcp.example/mcp' },
    },
  })
  const warnings = (more: object) => startWarnings(vmcpConfig({}, { console: good, ...more }), { env: {} })
  t.match(warnings(oidc('https://other.example')), [/^console\.auth\.issuer: .*different users/])
  t.same(warnings(oidc(good.auth.issuer)), [])
  t.same(warnings({}), [])
})

t.test('policies that grant no role cause a warning at start-up, too', async (t) => {
  const warnings = (policies: readonly string[]) =>
    startWarnings(vmcpConfig({}, { console: { ...good, roles: undefined, authz: { policies } } }), {
      env: {},
    })
  const permit = (name: string) => `permit(principal, action, resource == Console::"${name}");`
  t.same(warnings([permit('test-vmcp')]), [])
  t.match(warnings([permit('another')]), [
    /^console\.authz\.policies\[0\] applies only to Console::"another"/,
  ])
  t.match(warnings(['forbid(principal, action, resource);']), [/^console\.authz\.policies permit nothing/])
})

t.test('clients get the address in the settings', async (t) => {
  const mcpUrl = 'https://mcp.example.com/team/mcp'
  const console = await startTestConsole({}, { console: { mcpUrl } })
  t.teardown(() => console.close())
  const { json } = await console.api('connect')
  t.match(json, { url: mcpUrl })
  const clients = json['clients'] as {
    id: string
    add?: string
    command?: string
    file?: { content: string }
  }[]
  t.match(
    clients.find(({ id }) => id === 'claude-desktop'),
    {
      add: new RegExp(`^gatehouse client add claude-desktop --name \\S+ --url ${mcpUrl}$`),
      file: { path: 'claude_desktop_config.json', content: /"proxy",\s+"stdio"/ },
    },
  )
  t.notMatch(JSON.stringify(json), '--remote-auth', 'the server requires no login')
})
