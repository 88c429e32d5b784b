/**
 * The related objects that `customize` requests. It requests by name the objects that a spec names, so that a change of
 * an unrelated object triggers no sync and requests do not contain it.
 */
import t from 'tap'
import { makeHooks } from '../../../hooks/index.ts'
import { resource, testSettings, World } from '../../hooks/world.ts'
import { auth, authzConfig, group, oidc, oidcConfig, entry, server, virtual } from '../../hooks/resources.ts'

const hooks = makeHooks(testSettings)

/** Returns the requested names for each Gatehouse kind; `all` if the rule has no names. */
function askedFor(object: ReturnType<typeof resource>): Record<string, readonly string[] | 'all'> {
  const { relatedResources = [] } =
    hooks.byKind(object.kind)?.customize({ controller: {}, parent: object }) ?? {}
  const ours = relatedResources.filter(({ apiVersion }) => apiVersion === 'gatehouse.dev/v1beta1')
  return Object.fromEntries(
    ours.map((rule) => [rule.resource, 'names' in rule ? (rule.names ?? 'all') : 'all']),
  )
}

t.test(
  'a virtual server requests all members and their credentials, and other objects by name',
  async (t) => {
    const anyName = {
      mcpservers: 'all',
      mcpremoteproxies: 'all',
      mcpserverentries: 'all',
      mcpopenapiservers: 'all',
      mcpexternalauthconfigs: 'all',
    }
    t.strictSame(askedFor(virtual()), { ...anyName, mcpgroups: ['tools'] })
    const full = virtual({
      incomingAuth: { ...oidc, authzConfigRef: { name: 'policies' } },
      telemetryConfigRef: { name: 'otel' },
      webhookConfigRef: { name: 'company' },
      embeddingServerRef: { name: 'search' },
      config: {
        pinning: {},
        compositeToolRefs: [{ name: 'report' }, { name: 'summary' }],
        aggregation: { tools: [{ workload: 'a', toolConfigRef: { name: 'readonly' } }, { workload: 'b' }] },
      },
    })
    t.strictSame(askedFor(full), {
      ...anyName,
      mcpgroups: ['tools'],
      mcpoidcconfigs: ['login'],
      mcpauthzconfigs: ['policies'],
      mcptelemetryconfigs: ['otel'],
      mcpwebhookconfigs: ['company'],
      mcptoolconfigs: ['readonly'],
      mcptoollocks: 'all',
      embeddingservers: ['search'],
      virtualmcpcompositetooldefinitions: ['report', 'summary'],
    })
  },
)

t.test('members request objects by name only', async (t) => {
  t.strictSame(askedFor(entry('search', { externalAuthConfigRef: { name: 'exchange' } })), {
    mcpgroups: ['tools'],
    mcpexternalauthconfigs: ['exchange'],
  })
  const references = {
    oidcConfigRef: { name: 'login' },
    authzConfigRef: { name: 'policies' },
    toolConfigRef: { name: 'readonly' },
    telemetryConfigRef: { name: 'otel' },
    externalAuthConfigRef: { name: 'exchange' },
    authServerRef: { name: 'server' },
  }
  t.strictSame(askedFor(server('files', references)), {
    mcpgroups: ['tools'],
    mcpoidcconfigs: ['login'],
    mcpauthzconfigs: ['policies'],
    mcptoolconfigs: ['readonly'],
    mcptelemetryconfigs: ['otel'],
    mcpexternalauthconfigs: ['exchange', 'server'],
  })
})

t.test('an invalid spec causes no error and requests only the objects that it names', async (t) => {
  for (const spec of [
    undefined,
    7,
    { groupRef: 'tools' },
    { groupRef: { name: 7 } },
    { groupRef: { name: '' } },
  ])
    t.strictSame(askedFor(resource('MCPServerEntry', 'odd', spec)), {})
})

t.test('unnamed objects are not in the request, and the response stays the same', async (t) => {
  const others = Array.from({ length: 50 }, (_, index) =>
    resource('MCPAuthzConfig', `other-${index}`, {
      type: 'cedarv1',
      config: { policies: ['permit(principal, action, resource);'] },
    }),
  )
  const needed = [group, oidcConfig(), authzConfig(), auth.none, entry('search')]
  const door = virtual({ incomingAuth: { ...oidc, authzConfigRef: { name: 'policies' } } })
  const alone = new World().apply(...needed, door).settle()
  const crowded = new World().apply(...needed, door, ...others).settle()
  t.notMatch(JSON.stringify(crowded.request('VirtualMCPServer', 'door')), 'other-')
  t.strictSame(
    crowded.get('VirtualMCPServer', 'door')['status'],
    alone.get('VirtualMCPServer', 'door')['status'],
  )
  t.match(alone.get('VirtualMCPServer', 'door')['status'], { authzConfigHash: String })
})
