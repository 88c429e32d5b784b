/** Backends and tools that policies name in any of their parts. */
import t from 'tap'
import { namedOrigins } from '../../../schemas/cedar/index.ts'

t.test('origins: scopes, conditions, shadow policies and entities name backends and tools', async (t) => {
  const origins = namedOrigins(
    {
      policies: [
        'permit(principal, action, resource in Backend::"github");',
        'forbid(principal, action, resource in BackendTool::"github/delete/all") unless { resource in Backend::"files" };',
        'permit(principal, action, resource) when { "prod" == resource.backend || resource.backend == "test" };',
        'permit(principal, action, resource in BackendPrompt::"notes/review"); permit(principal, action, resource in BackendResource::"files/file:///a");',
        'permit(principal in Team::"github", action, resource == Tool::"github_search") when { principal.claim_backend == "x" };',
        'forbid(principal, action, resource in Workflow::"release");',
      ],
      shadowPolicies: ['forbid(principal, action, resource in BackendTool::"shadow/x");'],
      entitiesJson: JSON.stringify([
        {
          uid: { type: 'BackendTool', id: 'grouped/search' },
          attrs: {},
          parents: [{ type: 'Toolset', id: 'read' }],
        },
      ]),
    },
    'authz',
  )
  t.same(
    origins.map(({ path, name, tool }) => [path, name, tool].filter((one) => one !== undefined).join(' ')),
    [
      'authz.policies[0] github',
      'authz.policies[1] github delete/all',
      'authz.policies[1] files',
      'authz.policies[2] prod',
      'authz.policies[2] test',
      'authz.policies[3] notes',
      'authz.policies[3] files',
      'authz.shadowPolicies[0] shadow x',
      'authz.entitiesJson grouped search',
    ],
  )
})

t.test('origins: an unreadable policy names nothing', async (t) => {
  t.same(namedOrigins({}), [])
  t.same(namedOrigins({ policies: ['permit('], entitiesJson: 'no JSON' }), [])
  t.same(namedOrigins({ policies: ['forbid(principal, action, resource in BackendTool::"x");'] }), [])
})
