/** Shadow policies in every place that accepts policies: checked at admission and passed to the server. */
import t from 'tap'
import { authzViolations } from '../../hooks/kinds/common/checks/policies.ts'
import { ownAuthz, sharedPolicies } from '../../hooks/runtime-config/authz.ts'
import { PodNeeds } from '../../hooks/runtime-config/needs.ts'
import { validateResource } from '../../hooks/index.ts'
import { cedarViolations } from '../../schemas/cedar/index.ts'
import type { MCPAuthzConfig } from '../../schemas/index.ts'
import { resource } from './resources.ts'
import { authzConfigViolations } from '../../hooks/kinds/mcpauthzconfig/validate.ts'

const permit = 'permit(principal, action, resource);'
const forbid = 'forbid(principal, action, resource);'

const shared = (config: Record<string, unknown>): MCPAuthzConfig => ({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'MCPAuthzConfig',
  metadata: { name: 'p', namespace: 'default' },
  spec: { type: 'cedarv1', config: { policies: [permit], ...config } },
})

t.test('MCPAuthzConfig: shadow policies are read, checked and passed to the server', (t) => {
  const good = shared({ shadow_policies: [forbid], shadow_replaces: true })
  t.same(authzConfigViolations(good), [])
  t.match(sharedPolicies(good).value, { policies: [permit], shadowPolicies: [forbid], shadowReplaces: true })
  t.notMatch(sharedPolicies(shared({})).value, { shadowPolicies: [] })
  t.match(authzConfigViolations(shared({ shadow_policies: ['permit('], shadow_replaces: 'yes' })), [
    { path: 'spec.config.shadow_replaces', message: 'must be true or false' },
    { path: 'spec.config.shadow_policies[0]' },
  ])
  t.match(authzConfigViolations(shared({ shadow_policies: 'x' })), [
    { path: 'spec.config.shadow_policies', message: 'must be a list of policies' },
  ])
  t.match(sharedPolicies(shared({ shadow_policies: ['permit('] })), { value: undefined })
  t.end()
})

t.test('authzConfig.inline: shadow policies are read, checked and passed to the server', (t) => {
  const inline = { policies: [permit], entitiesJson: '[]', shadowPolicies: [forbid] }
  const config = { type: 'inline', inline, groupEntityType: 'ServiceGroup' } as const
  t.match(ownAuthz(config, undefined, new PodNeeds()).value, { shadowPolicies: [forbid] })
  t.match(authzViolations({ ...config, inline: { ...inline, shadowPolicies: ['x'] } }, 'spec.authzConfig'), [
    { path: 'spec.authzConfig.inline.shadowPolicies[0]' },
  ])
  t.end()
})

t.test('shadowReplaces: an incomplete setting is rejected everywhere', (t) => {
  t.match(authzConfigViolations(shared({ shadow_replaces: true })), [
    { path: 'spec.config.shadow_policies', message: 'is required with shadow_replaces' },
  ])
  t.match(
    sharedPolicies(shared({ shadow_replaces: true })).failure?.message,
    /shadow_replaces requires shadow_policies/,
  )
  t.match(
    sharedPolicies(shared({ shadow_policies: [forbid], shadow_replaces: 'yes' })).failure?.message,
    /shadow_replaces must be true or false/,
  )
  const server = resource('MCPServer', 'files', {
    image: 'files:1',
    transport: 'streamable-http',
    authzConfig: { type: 'inline', inline: { policies: [permit], shadowReplaces: false } },
  })
  t.match(validateResource(server).violations, [
    { path: 'spec.authzConfig.inline.shadowPolicies', message: 'shadowReplaces needs shadowPolicies' },
  ])
  t.end()
})

t.test('the limits apply to both lists together, unless shadow policies replace the others', (t) => {
  const replaces = true
  const long = (count: number) => Array.from({ length: count }, () => permit.padEnd(1000, ' '))
  t.match(cedarViolations(long(150), '[]', long(150)), [
    {
      path: 'shadowPolicies',
      message: 'together with policies contains more than 262144 characters in total',
    },
  ])
  t.same(cedarViolations(long(150), '[]', long(150), replaces), [])
  t.same(cedarViolations(long(100), '[]', long(100)), [])
  t.end()
})
