/** Roles by Cedar policies of the console's own: granted, forbidden, undecidable, and changed while people are signed in. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { OidcOptions } from '../../../runtime/console/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'
import { breakEngine } from '../../helpers/broken-engine.ts'
import { Browser } from '../../helpers/console/console.ts'
import { type LoginRigOptions, startLoginRig } from '../../helpers/console/login.ts'
import { freePort, startGatehouse } from '../../helpers/gatehouse.ts'
import { until } from '../../helpers/redis.ts'

type Settings = ReturnType<OidcOptions['roles']>

const authz = (policies: readonly string[], more: object = {}): Settings => ({
  authz: { policies: [...policies], entitiesJson: '[]', groupEntityType: 'ServiceGroup', ...more },
})
const console = 'Console::"test-vmcp"'
const granting = (action: string, group: string): string =>
  `permit(principal in ServiceGroup::"${group}", action == Action::"console:${action}", resource == ${console});`
const byGroups = authz([
  granting('view', 'viewers'),
  granting('operate', 'operators'),
  granting('audit', 'auditors'),
])

async function signedIn(t: Test, options: LoginRigOptions): Promise<Browser> {
  const rig = await startLoginRig(options)
  t.teardown(() => rig.close())
  return rig.signIn()
}

const rolesOf = async (browser: Browser): Promise<unknown> => (await browser.api('me')).json['roles']
const refusedPaths = async (browser: Browser): Promise<readonly string[]> => {
  const paths = ['connect', 'overview', 'policies', 'config']
  const statuses = await Promise.all(paths.map(async (path) => (await browser.api(path)).status))
  return paths.filter((_path, index) => statuses[index] === 403)
}

const everyRole: readonly [
  groups: readonly string[],
  roles: readonly string[],
  refused: readonly string[],
][] = [
  [[], [], ['overview', 'policies', 'config']],
  [['others'], [], ['overview', 'policies', 'config']],
  [['viewers'], ['viewer'], ['policies', 'config']],
  [['auditors'], ['auditor'], ['config']],
  [['operators'], ['operator'], []],
  [['viewers', 'auditors'], ['viewer', 'auditor'], ['config']],
]
for (const [groups, roles, refused] of everyRole)
  t.test(`policies: groups ${groups.join(' and ') || 'none'}`, async (t) => {
    const browser = await signedIn(t, { groups, roles: () => byGroups })
    t.same(await rolesOf(browser), roles)
    t.same(await refusedPaths(browser), refused)
  })

t.test('groups are those of the claim that is named, under the type that is named', async (t) => {
  const settings = authz([`permit(principal in Team::"core", action == Action::"console:view", resource);`], {
    groupClaimName: 'department',
    groupEntityType: 'Team',
  })
  const provider = {
    claims: { department: ['core'], groups: ['nothing'] },
    configuration: { claims: { openid: ['sub', 'groups', 'department'] } },
  }
  t.same(await rolesOf(await signedIn(t, { provider, roles: () => settings })), ['viewer'])
  const other = { ...provider, claims: { department: ['sales'], groups: ['core'] } }
  t.same(await rolesOf(await signedIn(t, { provider: other, roles: () => settings })), [])
})

t.test('a forbid outweighs every permit, and another console is not this one', async (t) => {
  const forbidding = authz([
    'permit(principal, action, resource);',
    `forbid(principal == Client::"alice", action == Action::"console:operate", resource == ${console});`,
  ])
  t.same(await rolesOf(await signedIn(t, { roles: () => forbidding })), ['viewer', 'auditor'])
  const elsewhere = authz(['permit(principal, action, resource == Console::"another");'])
  t.same(await rolesOf(await signedIn(t, { roles: () => elsewhere })), [])
})

t.test('policies of the server open no console', async (t) => {
  const more = {
    incomingAuth: {
      type: 'anonymous',
      authz: { type: 'cedar', policies: ['permit(principal, action, resource);'] },
    },
  }
  t.same(await rolesOf(await signedIn(t, { more, roles: () => byGroups })), [])
})

t.test('a policy that cannot be evaluated grants nothing, and a warning of the log names it', async (t) => {
  const lines: string[] = []
  const log = makeLog({ destination: { write: (line) => void lines.push(line) } })
  const failing = authz([
    'permit(principal, action == Action::"console:view", resource) when { context.claim_level > 3 };',
    'permit(principal, action == Action::"console:audit", resource);',
    'forbid(principal, action == Action::"console:audit", resource) when { context.claim_level > 3 };',
    'permit(principal, action == Action::"console:operate", resource);',
  ])
  const browser = await signedIn(t, { log, roles: () => failing })
  t.same(await rolesOf(browser), ['operator'], 'the others are decided')
  const told = lines.filter((line) => line.includes('could not be evaluated'))
  t.match(told.join(''), /"policy":"policies\[0\]"/)
  t.match(told.join(''), /"policy":"policies\[2\]","effect":"forbid"/)
  t.match(told.join(''), /the attribute claim_level is absent/)
})

t.test('without its engine nobody has a role, and the problem is told', async (t) => {
  const rig = await startLoginRig({ groups: ['operators'], roles: () => byGroups })
  t.teardown(() => rig.close())
  const broken = breakEngine()
  const browser = await rig.signIn()
  t.same(await rolesOf(browser), [])
  t.match(rig.console.vmcp.view.recent(), [{ type: 'policy_engine_failed' }])
  broken.repair()
  t.same(await rolesOf(browser), ['operator'], 'a failure is not remembered')
})

t.test(
  'changed settings hold for who is signed in, streams included; unusable ones grant nothing',
  async (t) => {
    const lines: string[] = []
    const log = makeLog({ destination: { write: (line) => void lines.push(line) } })
    let settings = byGroups
    const browser = await signedIn(t, { log, groups: ['operators'], roles: () => settings })
    t.same(await rolesOf(browser), ['operator'])
    settings = authz([granting('view', 'operators')])
    t.same(await rolesOf(browser), ['viewer'])
    t.equal((await browser.api('config')).status, 403)
    settings = { roles: [{ role: 'auditor', claim: 'groups', values: ['operators'] }] }
    t.same(await rolesOf(browser), ['auditor'])
    settings = authz(['no policy'])
    t.same(await rolesOf(browser), [])
    t.match(lines.join(''), /the policies of the console cannot be used; nobody has a role/)
  },
)

t.test(
  'gatehouse vmcp serve: an edited file changes roles at once, one that cannot be read changes nothing',
  async (t) => {
    const port = await freePort()
    const home = `http://127.0.0.1:${port}`
    const provider = await startOidcProvider({
      clients: [
        { client_id: 'console', client_secret: 'shown to nobody', redirect_uris: [`${home}/callback`] },
      ],
      claims: { groups: ['platform'] },
      configuration: { claims: { openid: ['sub', 'groups'] } },
    })
    t.teardown(() => provider.close())
    const file = join(t.testdir(), 'vmcp.json')
    const write = (policies: readonly string[]): void =>
      writeFileSync(
        file,
        JSON.stringify({
          name: 'team',
          groupRef: 'g',
          incomingAuth: { type: 'anonymous' },
          outgoingAuth: { source: 'inline' },
          aggregation: {},
          console: {
            enabled: true,
            port,
            publicUrl: home,
            auth: { type: 'oidc', issuer: provider.issuer, clientId: 'console', scopes: ['openid'] },
            authz: { policies },
          },
        }),
      )
    const may = (action: string): string =>
      `permit(principal in ServiceGroup::"platform", action == Action::"console:${action}", resource == Console::"team");`
    write([may('view')])
    const env = { ...process.env, GATEHOUSE_CONSOLE_CLIENT_SECRET: 'shown to nobody' }
    const running = startGatehouse(['vmcp', 'serve', '--config', file, '--port', '0'], env)
    t.teardown(() => running.interrupt())
    await running.waitFor(/console listening/)
    const browser = new Browser(`${home}/`)
    await browser.go('login?to=/')
    t.same(await rolesOf(browser), ['viewer'])
    write([may('operate')])
    await until(async () => JSON.stringify(await rolesOf(browser)) === '["operator"]')
    const [, origin] = /"url":"(http:[^"]+)\/mcp"/.exec(running.output()) ?? []
    const status = (await (await fetch(`${origin}/status`)).json()) as { problem_details: unknown }
    t.same(status.problem_details, [], 'nothing waits for a restart')
    write(['permit(principal, action, resource'])
    await running.waitFor(/console\.authz\.policies\[0\]/)
    t.same(await rolesOf(browser), ['operator'], 'the running settings go on')
  },
)
