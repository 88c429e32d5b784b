/**
 * `customize` requests all objects that a hook needs: with every object of ours in the namespace, each hook returns the
 * same response.
 */
import fc from 'fast-check'
import t from 'tap'
import { makeHooks } from '../../hooks/index.ts'
import { arbitraryResources } from '../hooks/arbitrary.ts'
import { resource, type Stored, testSettings, World } from '../hooks/world.ts'
import { webhookConfig, webhookSecrets } from '../hooks/resources.ts'

const hooks = makeHooks(testSettings)
const ours = 'gatehouse.dev/v1beta1'

const definition = resource('VirtualMCPCompositeToolDefinition', 'report', {
  name: 'report',
  description: 'Searches',
  steps: [{ id: 'find', tool: 'alpha.find', arguments: { q: 'x' } }],
})

/** References that the random resources rarely contain. */
const more = fc.record({
  authzConfigRef: fc.constantFrom('policies', 'missing'),
  webhookConfigRef: fc.constantFrom('company', 'missing'),
  toolConfigRef: fc.constantFrom('readonly', 'missing'),
  workflow: fc.constantFrom('report', 'missing'),
})

function door({ authzConfigRef, webhookConfigRef, toolConfigRef, workflow }: Record<string, string>): Stored {
  return resource('VirtualMCPServer', 'door', {
    groupRef: { name: 'tools' },
    incomingAuth: {
      type: 'oidc',
      oidcConfigRef: { name: 'login', audience: 'https://x.example.com' },
      authzConfigRef: { name: authzConfigRef },
    },
    webhookConfigRef: { name: webhookConfigRef },
    exposure: { hostname: 'door.example.com', ingress: {} },
    config: {
      pinning: {},
      compositeToolRefs: [{ name: workflow }],
      aggregation: { tools: [{ workload: 'alpha', toolConfigRef: { name: toolConfigRef } }] },
    },
  })
}

/** Returns every object of ours, as related objects of a request. */
function everything(world: World): Record<string, Record<string, Stored>> {
  const groups: Record<string, Record<string, Stored>> = {}
  for (const object of world.objects.values())
    if (object.apiVersion === ours)
      (groups[`${object.kind}.${ours}`] ??= {})[`team/${object.metadata.name}`] = object
  return groups
}

t.test('hooks: objects that were not requested do not change the response', async (t) => {
  let spared = 0
  fc.assert(
    fc.property(arbitraryResources(), more, (resources, references) => {
      const always = [webhookConfig(), ...webhookSecrets(), definition, door(references)]
      const world = new World().apply(...resources, ...always).ready()
      const all = everything(world)
      for (const { kind, apiVersion, metadata } of world.objects.values()) {
        if (apiVersion !== ours) continue
        const hook = hooks.byKind(kind)
        const request = world.request(kind, metadata.name)
        const related = request['related'] as Record<string, Record<string, Stored>>
        spared +=
          countOf(all) - countOf(Object.fromEntries(Object.keys(all).map((key) => [key, related[key] ?? {}])))
        const response = JSON.stringify(hook?.sync({ ...request, related: { ...related, ...all } }))
        if (response !== JSON.stringify(hook?.sync(request))) throw new Error(`${kind} ${metadata.name}`)
      }
    }),
    { numRuns: 12 },
  )
  t.ok(spared > 0, `${spared} objects were not requested`)
})

function countOf(groups: Record<string, object>): number {
  return Object.values(groups).reduce((sum, objects) => sum + Object.keys(objects).length, 0)
}
