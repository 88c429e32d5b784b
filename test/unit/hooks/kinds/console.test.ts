/**
 * The console of a virtual server in a cluster: its Secret and its port.
 */
import t from 'tap'
import { validateResource } from '../../../../hooks/index.ts'
import { secret, virtual, world } from '../../../hooks/resources.ts'
import type { World } from '../../../hooks/world.ts'

const console = (more: object = {}) => ({
  config: {
    console: {
      enabled: true,
      publicUrl: 'https://console.example.com',
      auth: {
        type: 'oidc',
        issuer: 'https://login.example.com',
        clientId: 'console',
        clientSecretRef: { name: 'console', key: 'secret' },
      },
      roles: [{ role: 'viewer', claim: 'groups', values: ['everybody'] }],
      ...more,
    },
  },
})

t.test('a missing Secret of the console is reported, and pods start without it', async (t) => {
  const w = world(virtual(console())).settle()
  const status = w.get('VirtualMCPServer', 'door')['status'] as { phase: string; message: string }
  t.equal(status.phase, 'Failed')
  t.match(status.message, /console\.auth\.clientSecretRef: not found: Secret console, key secret/)
  t.strictSame(w.list('Deployment'), [])
  const restarts = (w: World) => JSON.stringify(w.get('Deployment', 'vmcp-door')['spec'])
  w.apply(secret('console', { secret: 'one' })).settle()
  const before = restarts(w)
  t.match(before, /"name":"GATEHOUSE_CONSOLE_CLIENT_SECRET"/)
  w.apply(secret('console', { secret: 'two' })).settle()
  t.not(restarts(w), before, 'a new secret rolls the pods')
})

t.test(
  'changed roles and policies of the console replace no pods, and unknown names cause warnings',
  async (t) => {
    const policy = (action: string) =>
      `permit(principal, action == Action::"console:${action}", resource == Console::"door");`
    const byPolicies = (action: string) =>
      virtual(console({ roles: undefined, authz: { policies: [policy(action)] } }))
    const w = world(virtual(console()), secret('console', { secret: 'one' })).settle()
    const pods = () => JSON.stringify(w.get('Deployment', 'vmcp-door')['spec'])
    const before = pods()
    w.apply(byPolicies('view')).settle()
    t.equal(pods(), before)
    t.match(JSON.stringify(w.get('ConfigMap', 'door-vmcp-config')), 'console:view', 'the file contains it')
    t.same(validateResource(byPolicies('view')).warnings, [])
    const about = (name: string) =>
      validateResource(
        virtual(
          console({ roles: undefined, authz: { policies: [policy('view').replaceAll('door', name)] } }),
        ),
      ).warnings
    t.match(about('window'), [
      /^config\.console\.authz\.policies\[0\] applies only to Console::"window"; this console is Console::"door"/,
    ])
    const both = [
      policy('view')
        .replace('resource == Console::"door"', 'resource')
        .replace(';', ' when { resource == Console::"door" || resource == Console::"window" };'),
    ]
    t.same(
      validateResource(virtual(console({ roles: undefined, authz: { policies: both } }))).warnings,
      [],
      'shared by servers',
    )
    const forbidding = ['forbid(principal, action, resource);']
    t.match(
      validateResource(virtual(console({ roles: undefined, authz: { policies: forbidding } }))).warnings,
      [/authz\.policies permit nothing: no user gets a role/],
    )
    t.match(validateResource(byPolicies('call_tool')).warnings, [
      /^config\.console\.authz\.policies\[0\] refers to the unknown action Action::"console:call_tool"; known actions: console:view/,
    ])
  },
)

t.test('the port of the console must differ from the port of MCP', async (t) => {
  const said = (more: object) =>
    validateResource(virtual(console(more))).violations.map(({ path, message }) => `${path} ${message}`)
  t.strictSame(said({ port: 4483 }), ['spec.config.console.port must not be 4483, which is the MCP port'])
  t.strictSame(said({ port: 4484 }), [])
  t.strictSame(said({ port: 4483, enabled: false }), [], 'a disabled console has no port')
})
