/** Names in policies that no request contains: admission warns, and never rejects. */
import t from 'tap'
import { cedarWarnings } from '../../../schemas/cedar/index.ts'
import { virtualServerWarnings } from '../../../hooks/kinds/virtualmcpserver/warnings.ts'
import type { VirtualMCPServer } from '../../../schemas/index.ts'

const warn = (policy: string, more = {}): readonly string[] => cedarWarnings({ policies: [policy], ...more })

t.test('unknown types, actions and attributes cause warnings', (t) => {
  t.match(warn('permit(principal in Group::"ops", action, resource);'), [
    'policies[0] refers to entities of the unknown type Group; groups of callers are of type ServiceGroup',
  ])
  t.match(warn('permit(principal, action == Action::"call", resource);'), [
    'policies[0] refers to the unknown action Action::"call"; known actions: call_tool, get_prompt, get_skill, read_resource',
  ])
  t.match(
    warn(
      'permit(principal, action, resource) when { principal.email == "x" && context has days };',
    ).toSorted(),
    [
      'policies[0] reads the unknown attribute days',
      'policies[0] reads the unknown attribute email; use claim_<name> for claims',
    ],
  )
  t.match(warn('permit(principal, action, resource is Tol);'), [
    'policies[0] refers to entities of the unknown type Tol',
  ])
  t.match(
    cedarWarnings({ policies: [], shadowPolicies: ['permit(principal in Group::"o", action, resource);'] }),
    ['shadowPolicies[0] refers to'],
  )
  t.end()
})

t.test('names from requests, entities and settings cause no warning', (t) => {
  const entities = JSON.stringify([
    { uid: { type: 'Tool', id: 'x' }, attrs: { risk: 3 }, parents: [{ type: 'Toolset', id: 'read' }] },
  ])
  const policies = [
    'permit(principal in ServiceGroup::"ops", action == Action::"call_tool", resource in BackendTool::"a/b");',
    'permit(principal == Client::"x", action, resource in Toolset::"read") when { resource.risk < 4 };',
    'permit(principal, action, resource) when { principal has claim_realm && principal.claim_realm.roles.contains("x") };',
    'permit(principal, action, resource is Resource) when { resource.uri like "f*" && resource.operation == "read" };',
    'permit(principal, action, resource) when { context.arg_days < 3 && resource.readOnlyHint && resource has backend };',
  ]
  t.same(cedarWarnings({ policies, entitiesJson: entities }), [])
  t.same(warn('permit(principal in Team::"x", action, resource);', { groupEntityType: 'Team' }), [])
  t.same(warn('permit('), [], 'an unreadable policy is an error elsewhere')
  const many = Array.from({ length: 100 }, () => 'permit(principal in Group::"o", action, resource);')
  t.equal(cedarWarnings({ policies: many }).length, 20, 'bounded')
  t.end()
})

t.test('admission warns the author of a virtual server', (t) => {
  const inline = { policies: ['permit(principal in Group::"ops", action, resource);'], entitiesJson: '[]' }
  const server = {
    metadata: { name: 's' },
    spec: {
      incomingAuth: {
        type: 'anonymous',
        authzConfig: { type: 'inline', inline, groupEntityType: 'ServiceGroup' },
      },
    },
  }
  t.match(virtualServerWarnings(server as unknown as VirtualMCPServer), [
    /^authzConfig\.inline\.policies\[0\] refers to entities of the unknown type Group/,
  ])
  t.end()
})
