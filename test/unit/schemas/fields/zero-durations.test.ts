/**
 * Durations of zero. Every duration must be greater than zero (`PositiveDuration`), unless its description defines the
 * meaning of zero. Admission and the runtime apply the same schema, and no timer gets a number that it would run at
 * once.
 */
import { join } from 'node:path'
import t from 'tap'
import { timerMs, validateManifest, validateRuntime, type Violation } from '../../../../schemas/index.ts'
import { inlined, loadBundle } from '../../../../schemas/generate/load.ts'
import type { Schema } from '../../../../schemas/schema.ts'
import { parseVmcpConfig } from '../../../../runtime/config/vmcp/file.ts'
import { configureBackend } from '../../../../runtime/vmcp/backends/backend-settings.ts'
import { scriptSettings } from '../../../../runtime/vmcp/features/scripts/settings.ts'
import { healthSettings } from '../../../../runtime/vmcp/backends/health/settings.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { makeOutgoingAuth } from '../../../../runtime/vmcp/backends/outgoing-auth.ts'
import { type Doc, type Json, withValue } from '../tables/table.ts'
import { virtualServer } from '../tables/virtual-server.ts'

/** Reads the sources; generated schemas have no descriptions. */
const bundle = loadBundle(join(import.meta.dirname, '../../../../schemas'))

/** Every duration below spec.config, and the effect of zero. */
const failure = 'operational.failureHandling'
const bucket = { maxTokens: 1, refillPeriod: '1m' }
const step = { id: 'a', tool: 'b' }
const workflow = { name: 'w', description: 'd', steps: [step] }
const rows: readonly (readonly [field: string, zero: 'refused' | 'accepted', base?: Doc])[] = [
  ['operational.timeouts.default', 'refused'],
  ['operational.timeouts.perWorkload.github', 'refused'],
  [`${failure}.healthCheckInterval`, 'refused'],
  [`${failure}.healthCheckTimeout`, 'accepted'],
  [`${failure}.statusReportingInterval`, 'refused'],
  [`${failure}.circuitBreaker.timeout`, 'refused'],
  ['codeMode.toolCallTimeout', 'accepted'],
  ['optimizer.embeddingServiceTimeout', 'refused'],
  ['rateLimiting.shared.refillPeriod', 'refused', { rateLimiting: { shared: bucket } }],
  ['rateLimiting.perUser.refillPeriod', 'refused', { rateLimiting: { perUser: bucket } }],
  ['rateLimiting.tools[0].shared.refillPeriod', 'refused', tools('shared')],
  ['rateLimiting.tools[0].perUser.refillPeriod', 'refused', tools('perUser')],
  ['compositeTools[0].timeout', 'accepted', { compositeTools: [workflow] }],
  ['compositeTools[0].steps[0].timeout', 'accepted', { compositeTools: [workflow] }],
  ['compositeTools[0].steps[0].onError.retryDelay', 'accepted', { compositeTools: [retried(step)] }],
  ['compositeTools[0].steps[0].step.timeout', 'accepted', { compositeTools: [iterated()] }],
  ['compositeTools[0].steps[0].step.onError.retryDelay', 'accepted', { compositeTools: [iterated()] }],
]

function tools(side: string): Doc {
  return { rateLimiting: { tools: [{ name: 'x', [side]: bucket }] } }
}

function retried(inner: Doc): Doc {
  return { ...workflow, steps: [{ ...inner, onError: { action: 'retry', retryCount: 1 } }] }
}

function iterated(): Doc {
  const inner = { tool: 'b', onError: { action: 'retry', retryCount: 1 } }
  return { ...workflow, steps: [{ id: 'a', type: 'forEach', collection: '[]', step: inner }] }
}

/** Rate limits for users require callers, and all limits require Redis. */
const incoming = { type: 'oidc', oidc: { issuer: 'https://idp.example.com', audience: 'a', clientId: 'c' } }

function admission(field: string, value: Json, base: Doc): readonly Violation[] {
  const doc = withValue(virtualServer({ config: base }), `spec.config.${field}`, value)
  return validateManifest(doc).filter(({ path }) => path.startsWith('spec.config'))
}

function file(field: string, value: Json, base: Doc): Doc {
  const whole = {
    name: 'tools',
    groupRef: 'tools',
    incomingAuth: incoming,
    outgoingAuth: { source: 'discovered' },
    aggregation: {},
    sessionStorage: { provider: 'redis', address: 'redis:6379' },
    backends: [{ name: 'github', url: 'https://api.example.com/mcp', transport: 'streamable-http' }],
    ...base,
  }
  return withValue(whole, field, value)
}

const spellings = ['0s', '0h0m', '0.0s']

for (const [field, zero, base = {}] of rows)
  await t.test(`${field}: zero is ${zero} at admission and in the runtime`, async (t) => {
    for (const value of spellings) {
      const offline = admission(field, value, base)
      const running = validateRuntime('vmcp', file(field, value, base)).violations
      t.equal(offline.length > 0, zero === 'refused', `admission: ${value} ${JSON.stringify(offline)}`)
      t.same(
        running,
        offline.map(({ path, message }) => ({ path: path.replace('spec.config.', ''), message })),
        `runtime: ${value}`,
      )
    }
    for (const value of ['1s', '9s']) t.same(validateRuntime('vmcp', file(field, value, base)).violations, [])
    for (const { path, message } of admission(field, '0s', base)) {
      t.equal(path, `spec.config.${field}`)
      t.match(message, /must be (greater than zero|at least 1s)/)
    }
  })

await t.test('the table has every duration of spec.config', async (t) => {
  const known = rows.map(([field]) => field.replace('.github', '.*').replaceAll('[0]', '[]'))
  t.same(
    known.sort(),
    durationsOf('VirtualMCPConfig')
      .map(({ path }) => path)
      .sort(),
  )
})

await t.test('a duration that may be zero documents the meaning of zero, or has its own range', async (t) => {
  const ranged = /circuitBreaker\.timeout$|Lifespan$|maxAssertionAge$/
  const roots = [...bundle.kinds.map(({ kind }) => `${kind}Spec`), ...Object.values(bundle.runtime)]
  for (const root of roots)
    for (const { path, positive, description } of durationsOf(root))
      if (!positive && !ranged.test(path)) t.match(description, /\b0s means\b/, `${root}: ${path}`)
})

interface Found {
  readonly path: string
  readonly positive: boolean
  readonly description: string
}

/** Returns the durations below a definition: `[]` is an item, `*` an entry of a map. */
function durationsOf(name: string): readonly Found[] {
  const found: Found[] = []
  visit(bundle.defs[name] ?? {}, '', new Set())
  return found

  function visit(schema: Schema, path: string, above: ReadonlySet<string>): void {
    const target = schema.$ref?.replace('#/$defs/', '')
    if (target === 'Duration' || target === 'PositiveDuration')
      found.push({ path, positive: target === 'PositiveDuration', description: schema.description ?? '' })
    if (target !== undefined && above.has(target)) return
    const inside = target === undefined ? above : new Set([...above, target])
    const { properties = {}, items, additionalProperties } = inlined(schema, bundle)
    for (const [key, child] of Object.entries(properties))
      visit(child, path === '' ? key : `${path}.${key}`, inside)
    if (items) visit(items, `${path}[]`, inside)
    if (typeof additionalProperties === 'object') visit(additionalProperties, `${path}.*`, inside)
  }
}

await t.test('timerMs: only a duration of zero becomes 0', async (t) => {
  const longest = 2 ** 31 - 1
  for (const [text, ms] of [
    ['0s', 0],
    ['1ns', 1],
    ['1.5ms', 2],
    ['30s', 30_000],
    ['596h', 2_145_600_000],
    ['597h', longest],
    ['1000000h', longest],
  ] as const)
    t.equal(timerMs(text), ms, text)
})

await t.test('timers of the runtime get a valid delay for very short and very long durations', async (t) => {
  const outgoing = makeOutgoingAuth({}, undefined, silentLog)
  for (const [text, ms] of [
    ['1ns', 1],
    ['1000000h', 2 ** 31 - 1],
  ] as const) {
    const perWorkload = { github: text }
    const failureHandling = { healthCheckInterval: text, healthCheckTimeout: '0s' }
    const operational = { timeouts: { perWorkload }, failureHandling }
    const codeMode = { enabled: true, toolCallTimeout: text }
    const config = parseVmcpConfig(JSON.stringify(file('operational', operational, { codeMode })))
    const [backend] = config.backends ?? []
    if (!backend || !config.codeMode) throw new Error('the file has a backend and code mode')
    t.equal(
      configureBackend(backend, config, { outgoing, authServer: undefined, log: silentLog }).ready?.timeoutMs,
      ms,
    )
    t.match(healthSettings(config), { intervalMs: ms, timeoutMs: 0 })
    t.equal(scriptSettings(config.codeMode).toolCallTimeoutMs, ms)
  }
})
