/** The origin of items in policies: attributes, parents, and facts that a configuration cannot change. */
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'
import type { AccessRequest } from '../../../runtime/policy/requests.ts'
import { cedarViolations } from '../../../schemas/cedar/index.ts'
import { requireDecidedTarget } from '../../../runtime/vmcp/catalog/facts.ts'

const ada = makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada' } })

async function evaluate(policies: readonly string[], entities: unknown = []) {
  const authorizer = makeAuthorizer(
    { policies, entitiesJson: JSON.stringify(entities), groupEntityType: 'ServiceGroup' },
    { serverName: 'front' },
  )
  const subject = await authorizer.subject(ada)
  return {
    permits: (request: AccessRequest) => authorizer.decide(subject, request) === 'permitted',
    readsFacts: (request: AccessRequest) => authorizer.readsFacts(subject, request),
  }
}

const tool: AccessRequest = {
  action: 'call_tool',
  id: 'gh_search',
  origin: { backend: 'github', original: 'search' },
}
const when = (condition: string) => [`permit(principal, action, resource) when { ${condition} };`]

t.test('tools, prompts and resources belong to their backend and to their original name', async (t) => {
  const prompt: AccessRequest = { ...tool, action: 'get_prompt' }
  const resource: AccessRequest = {
    action: 'read_resource',
    id: 'file:///a',
    origin: { backend: 'files', original: 'file:///a', template: 'file:///{path}' },
  }
  const rows = [
    [tool, 'resource in BackendTool::"github/search" && resource in Backend::"github"'],
    [prompt, 'resource in BackendPrompt::"github/search" && resource in Backend::"github"'],
    [resource, 'resource in BackendResource::"files/file:///a" && resource in Backend::"files"'],
    [resource, 'resource in BackendResource::"files/file:///{path}"'],
    [resource, 'resource.backend == "files" && resource.original == "file:///a"'],
    [
      { ...tool, origin: { backend: '', original: 'release' } },
      'resource in Workflow::"release" && !(resource has backend)',
    ],
  ] as const
  for (const [request, condition] of rows) {
    const { permits, readsFacts } = await evaluate(when(condition))
    t.ok(readsFacts(request), condition)
    t.ok(permits(request), condition)
    t.notOk(permits({ ...request, origin: undefined }), `${condition}: without facts`)
  }
})

t.test('the same name at another backend is decided and cached separately', async (t) => {
  const { permits } = await evaluate(when('resource in Backend::"github"'))
  for (let round = 0; round < 2; round++) {
    t.ok(permits(tool))
    t.notOk(permits({ ...tool, origin: { backend: 'gitlab', original: 'search' } }))
  }
  const original = await evaluate(when('resource.original == "search"'))
  t.ok(original.permits(tool))
  t.notOk(original.permits({ ...tool, origin: { backend: 'github', original: 'delete' } }))
})

t.test('policies that only use advertised names require no facts', async (t) => {
  const { permits, readsFacts } = await evaluate([
    'permit(principal, action, resource == Tool::"gh_search");',
  ])
  t.notOk(readsFacts(tool))
  t.ok(permits({ action: 'call_tool', id: 'gh_search' }))
})

t.test('a configuration can group backends and their tools, but cannot add children to them', async (t) => {
  const group = [
    {
      uid: { type: 'BackendTool', id: 'github/search' },
      attrs: {},
      parents: [{ type: 'Toolset', id: 'read' }],
    },
    { uid: { type: 'Backend', id: 'files' }, attrs: {}, parents: [{ type: 'Zone', id: 'inner' }] },
  ]
  const grouped = await evaluate(['permit(principal, action, resource in Toolset::"read");'], group)
  t.ok(grouped.readsFacts(tool), 'the group is a parent of the origin')
  t.ok(grouped.permits(tool))
  const zone = await evaluate(['permit(principal, action, resource in Zone::"inner");'], group)
  t.ok(zone.permits({ ...tool, origin: { backend: 'files', original: 'x' } }))
  t.notOk(zone.permits(tool))

  for (const type of ['Backend', 'BackendTool', 'BackendPrompt', 'BackendResource', 'Workflow']) {
    const forged = [{ uid: { type: 'Tool', id: 'gh_search' }, attrs: {}, parents: [{ type, id: 'github' }] }]
    t.match(cedarViolations(when('true'), JSON.stringify(forged)), [
      {
        path: 'entitiesJson',
        message: new RegExp(`place Tool::"gh_search" under an entity of type ${type};`),
      },
    ])
  }
  const claimed = [
    { uid: { type: 'Tool', id: 'x' }, attrs: { backend: 'github', original: 'search' }, parents: [] },
  ]
  const { permits } = await evaluate(when('resource has backend && resource.backend == "github"'), claimed)
  t.notOk(permits({ action: 'call_tool', id: 'x' }), 'a configuration cannot set attributes of an origin')
  t.notOk(permits({ action: 'call_tool', id: 'x', origin: { backend: 'b', original: 'x' } }))
})

t.test('a name that resolves to another target after the decision is rejected', (t) => {
  const entry = { key: 'x', backend: 'a', original: 'search', json: Buffer.from('{}') }
  t.doesNotThrow(() => requireDecidedTarget({ backend: 'a', original: 'search' }, entry))
  for (const origin of [
    { backend: 'b', original: 'search' },
    { backend: 'a', original: 'delete' },
    { backend: '', original: 'search' },
  ])
    t.throws(() => requireDecidedTarget(origin, entry), { code: 'BACKEND_UNAVAILABLE' })
  t.end()
})
