/** Every hook is a pure function whose responses settle for any resources. */
import fc from 'fast-check'
import t from 'tap'
import { makeHooks } from '../../hooks/index.ts'
import { canonicalJson } from '../../schemas/index.ts'
import { cases } from '../hooks/cases.ts'
import { testSettings, World } from '../hooks/world.ts'
import { arbitraryResources } from '../hooks/arbitrary.ts'

const hooks = makeHooks(testSettings)

t.test('hooks: equal requests produce equal bytes, and are not modified', async (t) => {
  for (const [key, scenario] of Object.entries(cases)) {
    const hook = hooks.byKind(key.split('/')[0] ?? '')
    const request = deepFreeze(scenario())
    const once = hook?.sync(request)
    t.ok(JSON.stringify(hook?.sync(request)) === JSON.stringify(once), key)
    const other = hook?.sync(JSON.parse(shuffled(request)))
    t.ok(canonicalJson(other) === canonicalJson(once), `${key}: the order of members does not matter`)
  }
})

t.test('hooks: repeated syncs write nothing once the cluster has settled', async () => {
  fc.assert(
    fc.property(arbitraryResources(), (resources) => {
      const world = new World().apply(...resources).ready()
      for (const object of world.objects.values()) {
        const hook = hooks.byKind(object.kind)
        if (!hook) continue
        const request = world.request(object.kind, object.metadata.name)
        const { status } = hook.sync(request)
        if (JSON.stringify(status) !== JSON.stringify((request['parent'] as { status: unknown }).status))
          return false
      }
      return true
    }),
    { numRuns: 60 },
  )
})

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value)
    for (const item of Object.values(value)) deepFreeze(item)
  }
  return value
}

/** Returns the same JSON with the members of every object in reverse order. */
function shuffled(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toReversed())
      : item,
  )
}
