/**
 * Roles from the console's own Cedar policies: granted, forbidden, undecidable, and changed while users are signed in.
 */
import t from 'tap'
import { startLoginRig } from '../../helpers/console/login.ts'
import {
  authz,
  granting,
  rolesOf,
  serveWithPolicies,
  signedIn,
  testServer,
} from '../../helpers/console/roles.ts'
import type { Browser } from '../../helpers/console/console.ts'
import { breakEngine } from '../../helpers/broken-engine.ts'
import { until } from '../../helpers/redis.ts'

const byGroups = authz([
  granting('view', 'viewers'),
  granting('operate', 'operators'),
  granting('audit', 'auditors'),
])

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

t.test('groups come from the configured claim and have the configured type', async (t) => {
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

t.test('a forbid overrides every permit, and policies for another console do not apply', async (t) => {
  const forbidding = authz([
    'permit(principal, action, resource);',
    `forbid(principal == Client::"alice", action == Action::"console:operate", resource == ${testServer});`,
  ])
  t.same(await rolesOf(await signedIn(t, { roles: () => forbidding })), ['viewer', 'auditor'])
  const elsewhere = authz(['permit(principal, action, resource == Console::"another");'])
  t.same(await rolesOf(await signedIn(t, { roles: () => elsewhere })), [])
})

t.test('policies of the server grant no access to the console', async (t) => {
  const more = {
    incomingAuth: {
      type: 'anonymous',
      authz: { type: 'cedar', policies: ['permit(principal, action, resource);'] },
    },
  }
  t.same(await rolesOf(await signedIn(t, { more, roles: () => byGroups })), [])
})

t.test('without the policy engine no user has a role, and the problem is reported', async (t) => {
  const rig = await startLoginRig({ groups: ['operators'], roles: () => byGroups })
  t.teardown(() => rig.close())
  const broken = breakEngine()
  const browser = await rig.signIn()
  t.same(await rolesOf(browser), [])
  t.match(rig.console.vmcp.view.recent(), [{ type: 'policy_engine_failed' }])
  broken.repair()
  t.same(await rolesOf(browser), ['operator'], 'a failure is not cached')
})

t.test('changed settings apply to signed-in users, and unusable ones grant nothing', async (t) => {
  let settings = byGroups
  const rig = await startLoginRig({ groups: ['operators'], roles: () => settings })
  t.teardown(() => rig.close())
  const browser = await rig.signIn()
  t.same(await rolesOf(browser), ['operator'])
  settings = authz([granting('view', 'operators')])
  t.same(await rolesOf(browser), ['viewer'])
  t.equal((await browser.api('config')).status, 403)
  settings = { roles: [{ role: 'auditor', claim: 'groups', values: ['operators'] }] }
  t.same(await rolesOf(browser), ['auditor'])
  settings = authz(['no policy'])
  t.same(await rolesOf(browser), [])
  const { view } = rig.console.vmcp
  t.match(view.problems(), [{ type: 'console_policies', message: /cannot be used: no user has a role/ }])
  settings = byGroups
  t.same(await rolesOf(browser), ['operator'])
  t.same(view.problems(), [], 'the problem ends with the settings')
})

const inTeam = (action: string): string => granting(action, 'platform', 'Console::"team"')

t.test(
  'vmcp serve: an edited file changes roles at once, and an unreadable one changes nothing',
  async (t) => {
    const { running, browser, write, get } = await serveWithPolicies(t, {
      policies: [inTeam('view')],
      groups: ['platform'],
    })
    t.same(await rolesOf(browser), ['viewer'])
    write([inTeam('operate')])
    await until(async () => JSON.stringify(await rolesOf(browser)) === '["operator"]')
    t.same(JSON.parse(await get('/status')).problem_details, [], 'the settings apply without a restart')
    write(['permit(principal, action, resource'])
    await running.waitFor(/console\.authz\.policies\[0\]/)
    t.same(await rolesOf(browser), ['operator'], 'the current settings stay in use')
  },
)

t.test('an event stream ends only when a changed file changes the roles of its reader', async (t) => {
  const { browser, write } = await serveWithPolicies(t, {
    policies: [inTeam('view')],
    groups: ['platform'],
  })
  const viewing = await browser.events('stream?topics=sessions,catalog')
  // A reload that does not change roles is sent as an event, and does not end the stream.
  write([inTeam('view'), 'permit(principal, action, resource == Console::"another");'])
  await viewing.next('catalog')
  t.same(await rolesOf(browser), ['viewer'])
  write([inTeam('view'), inTeam('operate')])
  await viewing.next('catalog')
  await viewing.next('bye')
  await viewing.ended
  t.same(await rolesOf(browser), ['viewer', 'operator'])
  const operating = await browser.events('stream?topics=calls')
  write([`${inTeam('view')}forbid(principal, action, resource);`])
  await operating.next('bye')
  t.same(await rolesOf(browser), [])
})
