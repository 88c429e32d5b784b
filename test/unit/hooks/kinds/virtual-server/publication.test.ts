/** `spec.publish` of a virtual server: the address in the configuration file, and changes without a restart. */
import t from 'tap'
import { parse } from 'yaml'
import { oidc, oidcConfig, virtual, world } from '../../../../hooks/resources.ts'
import type { World } from '../../../../hooks/world.ts'

const publish = { name: 'com.example/tools', description: 'Tickets and documents' }

function publicationIn(w: World): unknown {
  const data = w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>
  return (parse(data['config.yaml'] ?? '') as { publish?: unknown }).publish
}

t.test('the published address is the one that clients use', (t) => {
  const exposure = { hostname: 'tools.example.com', ingress: {} }
  const { oidcConfigRef } = oidc
  const resourceUrl = 'https://door.example.com/mcp'
  const incomingAuth = { ...oidc, oidcConfigRef: { ...oidcConfigRef, resourceUrl } }
  const rows: readonly (readonly [object, string])[] = [
    [{}, 'http://vmcp-door.team.svc.cluster.local:4483/mcp'],
    [{ incomingAuth }, resourceUrl],
    [{ exposure }, 'https://tools.example.com/mcp'],
  ]
  for (const [spec, url] of rows) {
    const w = world(oidcConfig(), virtual({ publish, ...spec })).settle()
    t.strictSame(publicationIn(w), { ...publish, public: false, url })
  }
  t.equal(publicationIn(world(virtual()).settle()), undefined)
  t.end()
})

t.test('a changed publication does not restart the pods', (t) => {
  const template = (w: World) => (w.get('Deployment', 'vmcp-door')['spec'] as { template: unknown }).template
  const w = world(virtual()).ready().settle()
  const before = template(w)
  w.apply(virtual({ publish: { ...publish, public: true } })).settle()
  t.match(publicationIn(w), { public: true })
  t.strictSame(template(w), before)
  t.end()
})
