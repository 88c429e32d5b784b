/** The caller, action and resource as Cedar gets them, and the result of its response. Uses the real engine. */
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'
import type { AuthorizerConfig } from '../../../runtime/policy/authorizer.ts'
import type { AccessRequest } from '../../../runtime/policy/requests.ts'
import { proves } from '../../helpers/proves.ts'

const base: AuthorizerConfig = { entitiesJson: '[]', groupEntityType: 'ServiceGroup' }

interface Case {
  readonly policies: readonly string[]
  readonly claims?: Readonly<Record<string, unknown>>
  readonly config?: Partial<AuthorizerConfig>
}

/** Evaluates one request, by default a call of the tool `echo`. */
async function ask(
  { policies, claims = {}, config = {} }: Case,
  question: Partial<Omit<AccessRequest, 'arguments'>> & { readonly arguments?: string } = {},
): Promise<string> {
  const authorizer = makeAuthorizer({ ...base, ...config, policies }, { serverName: 'front' })
  const caller = makeCaller({
    issuer: 'https://idp.example',
    subject: 'ada',
    claims: { sub: 'ada', ...claims },
  })
  const subject = await authorizer.subject(caller)
  const { arguments: args, ...rest } = question
  return authorizer.decide(subject, {
    action: 'call_tool',
    id: 'echo',
    ...rest,
    ...(args === undefined ? {} : { arguments: Buffer.from(args) }),
  })
}

/** Returns a permit with a condition. */
const when = (condition: string): readonly string[] => [
  `permit(principal, action, resource) when { ${condition} };`,
]

t.test('decision: nothing is permitted by default, and a forbid overrides every permit', async (t) => {
  proves('3.config.incomingAuth.authz.policies', '3.auth.incoming.2')
  const permit =
    'permit(principal == Client::"ada", action == Action::"call_tool", resource == Tool::"echo");'
  t.equal(await ask({ policies: [permit] }), 'permitted')
  t.equal(await ask({ policies: [permit] }, { id: 'other' }), 'unmentioned')
  t.equal(await ask({ policies: [permit] }, { action: 'get_prompt' }), 'unmentioned')
  t.equal(await ask({ policies: [permit, 'forbid(principal, action, resource);'] }), 'forbidden')
})

t.test(
  'entities: each action has its own resource type, and every resource belongs to the server',
  async (t) => {
    const ofServer = (type: string) => [
      `permit(principal, action, resource is ${type}) when { resource in MCP::"front" };`,
    ]
    t.equal(await ask({ policies: ofServer('Tool') }), 'permitted')
    t.equal(await ask({ policies: ofServer('Prompt') }, { action: 'get_prompt' }), 'permitted')
    t.equal(
      await ask({ policies: ofServer('Resource') }, { action: 'read_resource', id: 'file:///a' }),
      'permitted',
    )
    t.equal(
      await ask({ policies: ['permit(principal, action, resource) when { resource in MCP::"back" };'] }),
      'unmentioned',
    )
  },
)

t.test('entities: resource and action have their attributes', async (t) => {
  const tool = 'resource.name == "echo" && resource.operation == "call" && resource.feature == "tool"'
  t.equal(
    await ask({ policies: when(`${tool} && action.operation == "call" && !(resource has uri)`) }),
    'permitted',
  )
  t.equal(
    await ask(
      { policies: when('resource.uri == "file:///a" && resource.feature == "resource"') },
      { action: 'read_resource', id: 'file:///a' },
    ),
    'permitted',
  )
  t.equal(
    await ask(
      { policies: when('resource.feature == "prompt" && action.operation == "get"') },
      { action: 'get_prompt' },
    ),
    'permitted',
  )
})

t.test('hints: declared hints of a tool are readable, undeclared hints are absent', async (t) => {
  const policies = when('resource has readOnlyHint && resource.readOnlyHint')
  t.equal(await ask({ policies }, { hints: { readOnlyHint: true } }), 'permitted')
  t.equal(await ask({ policies }, { hints: { readOnlyHint: false } }), 'unmentioned')
  t.equal(await ask({ policies }, { hints: { destructiveHint: true } }), 'unmentioned')
})

t.test('claims: become attributes of principal and context, converted by type', async (t) => {
  const claims = {
    email: 'ada@example.com',
    level: 7,
    ratio: 0.25,
    admin: true,
    tags: ['a', 'b'],
    address: { country: 'GB', floor: 3 },
    nothing: null,
  }
  for (const holder of ['principal', 'context']) {
    const condition = [
      `${holder}.claim_sub == "ada"`,
      `${holder}.claim_email like "*@example.com"`,
      `${holder}.claim_level < 10`,
      `${holder}.claim_ratio.lessThan(decimal("0.3"))`,
      `${holder}.claim_admin`,
      `${holder}.claim_tags.containsAll(["a", "b"])`,
      `${holder}.claim_address.country == "GB" && ${holder}.claim_address.floor == 3`,
      `!(${holder} has claim_nothing)`,
    ].join(' && ')
    t.equal(await ask({ policies: when(condition), claims }), 'permitted', holder)
  }
  t.equal(await ask({ policies: when('context == {claim_sub: "ada"}') }), 'permitted', 'the whole context')
})

t.test('groups: come from the configured claim, with the exact name before a dotted path', async (t) => {
  proves('3.config.incomingAuth.authz.groupClaimName')
  const policies = ['permit(principal in ServiceGroup::"ops", action, resource);']
  const config = { groupClaimName: 'realm.groups' }
  t.equal(await ask({ policies, config, claims: { 'realm.groups': ['ops'] } }), 'permitted')
  t.equal(await ask({ policies, config, claims: { realm: { groups: ['ops'] } } }), 'permitted')
  t.equal(
    await ask({ policies, config, claims: { 'realm.groups': ['dev'], realm: { groups: ['ops'] } } }),
    'unmentioned',
    'the exact name wins',
  )
  t.equal(
    await ask({ policies, config, claims: { realm: { groups: ['dev'] }, groups: ['ops'] } }),
    'unmentioned',
    'the named claim is used instead of the well-known ones',
  )
  t.equal(
    await ask({ policies, config, claims: { groups: ['ops'] } }),
    'permitted',
    'if it is absent, the well-known claims are used',
  )
})

t.test('groups: by default, the first well-known list claim is used', async (t) => {
  const policies = ['permit(principal in ServiceGroup::"ops", action, resource);']
  for (const name of ['groups', 'roles', 'cognito:groups'])
    t.equal(await ask({ policies, claims: { [name]: ['ops'] } }), 'permitted', name)
  t.equal(await ask({ policies, claims: { groups: ['dev'], roles: ['ops'] } }), 'unmentioned')
  t.equal(await ask({ policies, claims: { groups: 'ops' } }), 'unmentioned')
  t.equal(await ask({ policies, claims: { groups: 'dev', roles: ['ops'] } }), 'permitted')
  t.equal(await ask({ policies, claims: { groups: [7, null, { ops: 1 }, ''] } }), 'unmentioned')
})

t.test('roles: are added to the groups of the group claim', async (t) => {
  proves('3.config.incomingAuth.authz.roleClaimName')
  const config = { roleClaimName: 'resource_access.front.roles' }
  const claims = { groups: ['dev'], resource_access: { front: { roles: ['ops', 'dev'] } } }
  for (const group of ['dev', 'ops']) {
    const policies = [`permit(principal in ServiceGroup::"${group}", action, resource);`]
    t.equal(await ask({ policies, config, claims }), 'permitted', group)
  }
})

t.test('groups: have the configured entity type', async (t) => {
  proves('3.config.incomingAuth.authz.groupEntityType')
  const policies = ['permit(principal in Team::"ops", action, resource);']
  t.equal(
    await ask({ policies, config: { groupEntityType: 'Team' }, claims: { groups: ['ops'] } }),
    'permitted',
  )
  t.equal(await ask({ policies, claims: { groups: ['ops'] } }), 'unmentioned')
})

t.test('static entities: parent groups of a group count when they are configured', async (t) => {
  proves('3.config.incomingAuth.authz.entitiesJson')
  const policies = ['permit(principal in ServiceGroup::"staff", action, resource);']
  const entitiesJson = JSON.stringify([
    { uid: { type: 'ServiceGroup', id: 'ops' }, attrs: {}, parents: [{ type: 'ServiceGroup', id: 'tech' }] },
    {
      uid: { type: 'ServiceGroup', id: 'tech' },
      attrs: {},
      parents: [{ type: 'ServiceGroup', id: 'staff' }],
    },
    { uid: { type: 'ServiceGroup', id: 'staff' }, attrs: {}, parents: [] },
  ])
  const claims = { groups: ['ops'] }
  t.equal(await ask({ policies, claims, config: { entitiesJson } }), 'permitted')
  t.equal(await ask({ policies, claims }), 'unmentioned')
})

t.test('static entities: are merged with those of the request', async (t) => {
  const entitiesJson = JSON.stringify([
    {
      uid: { type: 'Client', id: 'ada' },
      attrs: { clearance: 3, boss: { __entity: { type: 'Client', id: 'grace' } } },
      parents: [{ type: 'ServiceGroup', id: 'founders' }],
    },
    { uid: { type: 'Client', id: 'grace' }, attrs: { clearance: 9 }, parents: [] },
    {
      uid: { type: 'Tool', id: 'echo' },
      attrs: { owner: 'ops', name: 'not this', readOnlyHint: false },
      parents: [{ type: 'Shelf', id: 'a' }],
    },
    { uid: { type: 'Shelf', id: 'a' }, attrs: {}, parents: [{ type: 'Zone', id: 'b' }] },
    { uid: { type: 'Action', id: 'call_tool' }, attrs: {}, parents: [{ type: 'Action', id: 'write' }] },
    { uid: { type: 'MCP', id: 'front' }, attrs: { zone: 'eu' }, parents: [{ type: 'Site', id: 'c' }] },
    { uid: { type: 'ServiceGroup', id: 'limits' }, attrs: { clearance: 2 }, parents: [] },
  ])
  const config = { entitiesJson }
  const claims = { groups: ['ops'] }
  for (const condition of [
    'principal.clearance == 3 && principal.claim_sub == "ada"',
    'principal.boss.clearance == 9',
    'principal in ServiceGroup::"founders" && principal in ServiceGroup::"ops"',
    'resource.owner == "ops" && resource.name == "echo"',
    'resource in Zone::"b" && resource in MCP::"front" && resource in Site::"c"',
    'MCP::"front".zone == "eu"',
    'action in Action::"write" && action.operation == "call"',
    'principal.clearance > ServiceGroup::"limits".clearance',
  ]) {
    t.equal(await ask({ policies: when(condition), config, claims }), 'permitted', condition)
  }
  t.equal(
    await ask({ policies: when('resource.readOnlyHint'), config }, { hints: { readOnlyHint: true } }),
    'unmentioned',
    'the configuration overrides the tool',
  )
  t.equal(
    await ask({ policies: ['permit(principal, action in [Action::"write"], resource);'], config }),
    'permitted',
    'an action group in the scope',
  )
})

t.test(
  'arguments: scalars become attributes of resource and context, lists and objects only mark their presence',
  async (t) => {
    const args = '{"path":"/tmp/x","count":5,"share":0.5,"force":false,"list":[1],"map":{"a":1},"none":null}'
    for (const holder of ['resource', 'context']) {
      const condition = [
        `${holder}.arg_path like "/tmp/*"`,
        `${holder}.arg_count < 10`,
        `${holder}.arg_share.lessThan(decimal("0.6"))`,
        `!${holder}.arg_force`,
        `${holder}.arg_list_present && ${holder}.arg_map_present`,
        `!(${holder} has arg_list) && !(${holder} has arg_map) && !(${holder} has arg_none)`,
      ].join(' && ')
      t.equal(await ask({ policies: when(condition) }, { arguments: args }), 'permitted', holder)
    }
  },
)

t.test('arguments: whole numbers keep all their digits', async (t) => {
  const policies = when('context.arg_id == 9007199254740993')
  t.equal(await ask({ policies }, { arguments: '{"id":9007199254740993}' }), 'permitted')
  t.equal(await ask({ policies }, { arguments: '{"id":9007199254740992}' }), 'unmentioned')
  const longest = when('context.arg_id == 9223372036854775807')
  t.equal(await ask({ policies: longest }, { arguments: '{"id":9223372036854775807}' }), 'permitted')
  const hundred = when('context.arg_n == 100')
  for (const n of ['100', '1e2', '100.0'])
    t.equal(await ask({ policies: hundred }, { arguments: `{"n":${n}}` }), 'permitted', n)
})

t.test(
  'failing policies: a failing permit is ignored, a failing forbid denies, and other policies work as before',
  async (t) => {
    const permitAll = 'permit(principal, action, resource);'
    const failingPermit = 'permit(principal, action, resource) when { context.arg_x > 1 };'
    const failingForbid = 'forbid(principal, action, resource) when { context.arg_x > 1 };'
    t.equal(await ask({ policies: [failingPermit] }), 'unmentioned')
    t.equal(await ask({ policies: [failingPermit, permitAll] }), 'permitted')
    t.equal(await ask({ policies: [failingForbid, permitAll] }), 'forbidden')
    t.equal(await ask({ policies: [failingForbid, permitAll] }, { arguments: '{"x":1}' }), 'permitted')
    t.equal(await ask({ policies: [failingForbid, permitAll] }, { arguments: '{"x":"1"}' }), 'forbidden')
  },
)

t.test('arguments: the maximum text length decreases with the length of the patterns', async (t) => {
  const policies = (count: number) => [
    ...Array.from(
      { length: count },
      (_, i) => `forbid(principal, action, resource) when { context.arg_q like "*${'a'.repeat(30)}b${i}*" };`,
    ),
    'permit(principal, action, resource);',
  ]
  const text = (length: number) => ({ arguments: JSON.stringify({ q: 'a'.repeat(length) }) })
  t.equal(await ask({ policies: policies(1) }, text(65_536)), 'permitted')
  t.equal(await ask({ policies: policies(1) }, text(65_537)), 'forbidden')
  t.equal(await ask({ policies: policies(40) }, text(2_048)), 'permitted')
  t.equal(await ask({ policies: policies(40) }, text(3_200)), 'forbidden', 'more than 4,000,000 comparisons')
  t.equal(
    await ask({ policies: policies(400) }, text(2_048)),
    'permitted',
    'texts of this length are always compared',
  )
  t.equal(await ask({ policies: policies(400) }, text(2_049)), 'forbidden')
})
