/**
 * Failing console policies, and users that the policies cannot represent: no role is granted, and each view reports it.
 */
import t from 'tap'
import { startLoginRig } from '../../helpers/console/login.ts'
import { authz, granting, rolesOf, serveWithPolicies, signedIn } from '../../helpers/console/roles.ts'

const failing = [
  'permit(principal, action == Action::"console:view", resource) when { context.claim_level > 3 };',
  'permit(principal, action == Action::"console:audit", resource);',
  'forbid(principal, action == Action::"console:audit", resource) when { context.claim_level > 3 };',
  'permit(principal, action == Action::"console:operate", resource);',
]

t.test(
  'a policy that cannot be evaluated grants nothing, and log, status, metrics and console report it',
  async (t) => {
    const served = await serveWithPolicies(t, {
      policies: failing,
      groups: [],
      telemetry: { enablePrometheusMetricsPath: true },
    })
    const { running, browser, write, get } = served
    t.same(await rolesOf(browser), ['operator'], 'the other policies are evaluated')
    await rolesOf(browser)
    const told = () =>
      running
        .output()
        .split('\n')
        .filter((line) => line.includes('a console policy could not be evaluated'))
    await running.waitFor(/"policy":"policies\[2\]"/)
    t.equal(told().length, 2, 'each problem is reported once')
    t.match(
      told()[0],
      /"policy":"policies\[0\]","effect":"permit","reason":"the attribute claim_level is absent/,
    )
    t.match(told()[1], /"policy":"policies\[2\]","effect":"forbid"/)
    const problem = {
      type: 'console_policies',
      message: /policies\[0\], policies\[2\]; a failing permit/,
      fix: /console\.authz/,
    }
    t.match(JSON.parse(await get('/status')).problem_details, [problem])
    t.match(await get('/metrics'), /gatehouse_problems\{[^}]*type="console_policies"[^}]*\} 1/)
    t.match((await browser.api('overview')).json['problems'], [problem])
    t.match((await browser.api('policies')).json['problems'], [/policies\[0\], policies\[2\]/])
    t.match(
      (await browser.api('config')).json['effective'],
      /Action::"console:operate"/,
      'the groups are readable',
    )

    write(failing, { operational: { logLevel: 'debug' } })
    await running.waitFor(/configuration reloaded/)
    await rolesOf(browser)
    t.match(JSON.parse(await get('/status')).problem_details, [problem], 'the policies are the same')
    write(['permit(principal, action, resource);'])
    await running.waitFor(/configuration reloaded[^]*configuration reloaded/)
    t.same(JSON.parse(await get('/status')).problem_details, [], 'the problem ends with the policies')
    t.same(await rolesOf(browser), ['viewer', 'operator', 'auditor'])
  },
)

const claimed = (groups: unknown) => ({ claims: { groups } })

t.test('a user with too many groups for the policies gets no role and sees the reason', async (t) => {
  const settings = authz([
    'permit(principal, action, resource);',
    'forbid(principal in ServiceGroup::"group-9999", action, resource);',
  ])
  const groups = Array.from({ length: 10_000 }, (_, index) => `group-${index}`)
  const rig = await startLoginRig({ groups, roles: () => settings })
  t.teardown(() => rig.close())
  const browser = await rig.signIn()
  t.same(await rolesOf(browser), [])
  const { view } = rig.console.vmcp
  await rolesOf(browser)
  t.match(view.recent(), [{ type: 'console_user_untold', count: 1, fix: /identity provider/ }])
})

for (const [kind, groups] of [
  ['a number', 7],
  ['a text', 'operators'],
  ['an object', { operators: true }],
  ['lists in a list', [['operators']]],
  ['a text with a quote, a new line and a bidi mark', ['operators"', 'oper\nators', 'operators\u202e']],
  ['nothing', null],
] as const)
  t.test(`a groups claim that is ${kind} adds no groups`, async (t) => {
    const configuration = { claims: { openid: ['sub', 'groups'] } }
    const provider = { ...claimed(groups), configuration }
    const browser = await signedIn(t, { provider, roles: () => authz([granting('operate', 'operators')]) })
    t.same(await rolesOf(browser), [])
  })
