/**
 * Sends hostile hook requests. Each gets a valid response or a clear rejection. No hook crashes, or returns a child or
 * a status that the API server would reject.
 */
import fc from 'fast-check'
import t from 'tap'
import { reviewAdmission, makeHooks, validateResource } from '../../hooks/index.ts'
import { GatehouseError, isDnsSubdomain, type KindName } from '../../schemas/index.ts'
import { validateStatus } from '../helpers/hooks/status.ts'
import { cases } from '../hooks/cases.ts'
import { testSettings } from '../hooks/world.ts'

const hooks = makeHooks(testSettings)
const requests = Object.entries(cases).map(
  ([key, scenario]) => [key.split('/')[0] ?? '', JSON.stringify(scenario())] as const,
)

/** Lists the path of every value in a JSON value. */
function places(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [path]
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return [path, ...entries.flatMap(([key, item]) => places(item, [...path, key]))]
}

const strange = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    undefined,
    '',
    0,
    -1,
    1e308,
    true,
    [],
    {},
    [null],
    'x'.repeat(5000),
    '\u0000',
    '${x}',
    '../..',
    '__proto__',
  ),
  fc.json({ maxDepth: 4 }).map((text) => JSON.parse(text) as unknown),
  fc.string({ unit: 'binary' }),
)

/** The damaged request, the path and the new value. Small, so that a counterexample is readable. */
const damage = fc.record({
  index: fc.nat(requests.length - 1),
  changes: fc.array(fc.tuple(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), strange), {
    minLength: 1,
    maxLength: 6,
  }),
})
type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never

/** Returns a recorded request with some values replaced or removed. */
function damaged({ index, changes }: Damage): { kind: string; request: Record<string, unknown> } {
  const [kind, text] = requests[index] ?? ['', '{}']
  const request = JSON.parse(text) as Record<string, unknown>
  const all = places(request)
  for (const [at, value] of changes) put(request, all[Math.floor(at * all.length)] ?? [], value)
  return { kind, request: JSON.parse(JSON.stringify(request)) as Record<string, unknown> }
}

function put(root: Record<string, unknown>, path: readonly (string | number)[], value: unknown): void {
  let target = root as Record<string | number, unknown>
  for (const step of path.slice(0, -1)) {
    const next = target[step]
    if (typeof next !== 'object' || next === null) return
    target = next as Record<string | number, unknown>
  }
  const last = path.at(-1)
  if (last !== undefined) target[last] = value
}

/** Returns the validation errors of a response. */
function violationsOf(kind: string, response: { status: unknown; children: readonly unknown[] }): string[] {
  const violations = validateStatus(kind as KindName, response.status).map(
    ({ path, message }) => `${path}: ${message}`,
  )
  const seen = new Set<string>()
  for (const child of response.children) {
    const { apiVersion, kind, metadata } = child as {
      apiVersion?: unknown
      kind?: unknown
      metadata?: { name?: unknown }
    }
    if (typeof apiVersion !== 'string' || typeof kind !== 'string') violations.push('a child without type')
    if (typeof metadata?.name !== 'string' || !isDnsSubdomain(metadata.name))
      violations.push(`a child called ${String(metadata?.name)}`)
    const key = `${String(apiVersion)} ${String(kind)} ${String(metadata?.name)}`
    if (seen.has(key)) violations.push(`${key} twice`)
    seen.add(key)
  }
  if (JSON.stringify(response).includes(':null')) violations.push('a null')
  return violations
}

/** Replaces one member in each request of a kind. */
function withMember(kind: string, member: string, value: unknown): [Damage][] {
  const damages = requests.flatMap(([of, text], index): [Damage][] => {
    const all = places(JSON.parse(text))
    const at = all.findIndex((path) => path.join('.') === member)
    return of !== kind || at < 0 ? [] : [[{ index, changes: [[(at + 0.5) / all.length, value]] }]]
  })
  if (damages.length === 0) throw new Error(`no request of ${kind} has ${member}`)
  return damages
}

/** Regressions: the first returned `observedGeneration: null`, the other two threw a TypeError. */
const found: [Damage][] = [
  ...withMember('VirtualMCPServer', 'parent.metadata.generation', null),
  ...withMember('VirtualMCPServer', 'parent.spec', []),
  ...withMember('VirtualMCPServer', 'parent.spec', null),
]

t.test('hooks: a damaged request gets valid objects or a rejection', async () => {
  fc.assert(
    fc.property(damage, (change) => {
      const { kind, request } = damaged(change)
      const hook = hooks.byKind(kind)
      if (!hook) return
      try {
        const { relatedResources } = hook.customize(request)
        if (relatedResources.some(({ names }) => names?.length === 0))
          throw new Error('a rule that selects everything')
        const response = hook.sync(request)
        const violations = violationsOf(kind, response)
        if (violations.length > 0) throw new Error(violations.join('\n'))
        hook.events(request, response)
      } catch (error) {
        if (!(error instanceof GatehouseError) || error.code !== 'BAD_REQUEST') throw error
      }
    }),
    { numRuns: 1500, examples: found },
  )
})

t.test('admission: a damaged review or manifest is checked or rejected', async () => {
  fc.assert(
    fc.property(damage, strange, (change, other) => {
      const { parent } = damaged(change).request
      const { violations, warnings } = validateResource(parent, { old: other })
      for (const { path, message } of violations)
        if (typeof path !== 'string' || message === '') throw new Error('an empty problem')
      for (const warning of warnings) if (warning === '') throw new Error('an empty warning')
      for (const operation of ['CREATE', 'UPDATE', 'DELETE', other]) {
        reviewAdmission(hooks, {
          kind: 'AdmissionReview',
          request: { uid: 'u', operation, object: parent, oldObject: other },
        })
        reviewAdmission(hooks, {
          kind: 'AdmissionReview',
          request: { uid: 'u', operation, object: other, oldObject: parent },
        })
      }
    }),
    { numRuns: 400 },
  )
})

t.test('hooks: any other body gets a clear rejection', async (t) => {
  for (const hook of hooks) {
    fc.assert(
      fc.property(
        fc.oneof(strange, fc.record({ parent: strange, children: strange, related: strange })),
        (body) => {
          try {
            hook.sync(body)
          } catch (error) {
            if (!(error instanceof GatehouseError) || error.code !== 'BAD_REQUEST') throw error
          }
        },
      ),
      { numRuns: 60 },
    )
    t.pass(hook.kind)
  }
})

t.test('hooks: a huge group fits into one configuration, or is reported as too large', async (t) => {
  const entries = Object.fromEntries(
    Array.from({ length: 3000 }, (_, i) => [
      `team/e${i}`,
      {
        apiVersion: 'gatehouse.dev/v1beta1',
        kind: 'MCPServerEntry',
        metadata: { name: `e${i}`, namespace: 'team' },
        spec: { remoteUrl: `https://e${i}.example.com/mcp`, transport: 'sse', groupRef: { name: 'tools' } },
        status: { phase: 'Valid' },
      },
    ]),
  )
  const request = cases['VirtualMCPServer/minimal']?.() as { related: Record<string, unknown> }
  request.related['MCPServerEntry.gatehouse.dev/v1beta1'] = entries
  const { status } = hooks.byKind('VirtualMCPServer')?.sync(request) ?? { status: {} }
  t.match(status, { phase: 'Failed', message: /500|ConfigMap holds/ })
  t.strictSame(validateStatus('VirtualMCPServer', status), [])
})
