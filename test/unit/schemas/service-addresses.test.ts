/**
 * Fields that contain an address: admission, `gatehouse validate` and the runtime reject metadata and link-local
 * addresses in each of them, unless the table gives a reason.
 */
import { join } from 'node:path'
import t from 'tap'
import { serviceViolation, validateManifest, validateRuntime } from '../../../schemas/index.ts'
import { inlined, loadBundle } from '../../../schemas/generate/load.ts'
import type { Schema } from '../../../schemas/schema.ts'
import { checkRules } from '../../../schemas/validation/rules.ts'
import { document } from './tables/table.ts'

const bundle = loadBundle(join(import.meta.dirname, '../../../schemas'))

const refused = [
  'https://169.254.169.254/latest/meta-data',
  'https://169.254.170.2',
  'https://2852039166',
  'https://100.100.100.200',
  'https://[fd00:ec2::254]',
  'https://[fe80::1]',
  'https://[::ffff:169.254.169.254]:8080',
  'https://metadata.google.internal/computeMetadata',
  'https://metadata.google.internal.',
  'https://METADATA.goog',
]
const allowed = [
  'https://keycloak.auth.svc.cluster.local/realms/a',
  'https://10.0.0.7:4318',
  'https://192.168.1.2',
  'https://127.0.0.1:8443',
  'https://kubernetes.default.svc',
  'https://login.example.com',
]

/** Fields that look like addresses but are not dialed over HTTP. */
const reasons: Readonly<Record<string, string>> = {
  issuer: 'of the embedded server: its own name',
  issuerRef: 'the name of a trusted issuer',
  authorizationEndpointBaseUrl: 'opened by browsers alone',
  address: 'of Redis: not HTTP, and nothing that it says is passed on',
  clusterAddrs: 'of Redis',
  endpointPrefix: 'a path',
  publicUrl: 'of the console: opened by browsers alone',
  mcpUrl: 'of the console: shown to people, never called',
  uri: 'of a page of MCP Apps: compared, never dialed',
  redirectUri: 'opened by browsers alone',
  redirectUris: 'opened by browsers alone',
  addresses: 'a policy, not an address',
  targetAddresses: 'a policy, not an address',
}

interface Found {
  readonly path: string
  readonly name: string
  readonly schema: Schema
}

function addressesOf(root: string): readonly Found[] {
  const found: Found[] = []
  function visit(reference: Schema, path: string, name: string, above: readonly string[]): void {
    const target = reference.$ref
    if (target !== undefined && above.includes(target)) return
    const inside = target === undefined ? above : [...above, target]
    const schema = inlined(reference, bundle)
    const looksSo = /ur[li]s?$|endpoint|^issuer|^authority$|address/i.test(name)
    if (schema.type === 'string' && (schema['x-address'] || looksSo))
      found.push({ path, name, schema: reference })
    for (const [key, child] of Object.entries(schema.properties ?? {}))
      visit(child, `${path}.${key}`, key, inside)
    if (schema.items) visit(schema.items, `${path}[]`, name, inside)
    if (typeof schema.additionalProperties === 'object')
      visit(schema.additionalProperties, `${path}.*`, name, inside)
  }
  visit(bundle.defs[root] ?? {}, root, '', [])
  return found
}

const roots = [...bundle.kinds.map(({ kind }) => `${kind}Spec`), ...Object.values(bundle.runtime)]

await t.test('every address field rejects forbidden addresses, or has a reason', async (t) => {
  let checked = 0
  for (const root of roots)
    for (const { path, name, schema } of addressesOf(root)) {
      if (!inlined(schema, bundle)['x-address']) {
        t.ok(reasons[name], `${path}: has no rule for its address and no reason`)
        continue
      }
      checked += 1
      for (const url of refused)
        t.match(checkRules(schema, url, path, []), [{ path, message: /never allowed/ }], `${path} ${url}`)
      for (const url of allowed) t.same(checkRules(schema, url, path, []), [], `${path} ${url}`)
    }
  t.ok(checked > 30, `${checked} fields`)
})

await t.test('a collector address is valid with and without a scheme', async (t) => {
  for (const endpoint of ['169.254.169.254:4318', 'metadata.google.internal:80', 'http://169.254.169.254'])
    t.match(serviceViolation(endpoint), /never allowed/, endpoint)
  for (const endpoint of ['collector:4318', 'otel.monitoring.svc:4317', '', 'not a host'])
    t.equal(serviceViolation(endpoint), undefined, endpoint)
})

await t.test('admission and the runtime give the same message', async (t) => {
  const endpoint = '169.254.169.254:4318'
  const offline = validateManifest(
    document('MCPTelemetryConfig', {
      openTelemetry: { enabled: true, endpoint, metrics: { enabled: true } },
    }),
  )
  t.match(offline, [
    { path: 'spec.openTelemetry.endpoint', message: /metadata address, which is never allowed/ },
  ])
  const running = validateRuntime('vmcp', {
    name: 'tools',
    groupRef: 'tools',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: {},
    telemetry: { endpoint, metricsEnabled: true },
  })
  t.same(running.violations, [{ path: 'telemetry.endpoint', message: offline[0]?.message }])
})
