/**
 * For every field that names a Secret or ConfigMap: when the object or its key is missing, a condition names it, a
 * Warning Event reports it if an operator must act, and the children stay unchanged.
 *
 * The test removes the referenced objects from each golden request, one at a time. A field of the schemas that no
 * golden request sets fails the last test.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hookSettings, makeHooks } from '../../../hooks/index.ts'
import { referenceFields, resourceOf } from '../../helpers/hooks/reference-fields.ts'
import { servingCertificate } from '../serving-certificate.ts'
import { referenceManifests } from './manifests.ts'
import { group, oidcConfig, policy } from '../resources.ts'
import { type Condition, type Stored, testSettings, World } from '../world.ts'

interface GoldenRequest extends Record<string, unknown> {
  readonly parent: Stored
  readonly children: Record<string, Record<string, Stored>>
  readonly related: Record<string, Record<string, Stored>>
}
interface Reference {
  readonly path: string
  readonly name: string
  readonly key: string | undefined
  readonly optional: boolean
}

const hooks = makeHooks(hookSettings({ ...testSettings, enableObo: true, gatewayApi: true }))
const groups = { secrets: 'Secret.v1', configmaps: 'ConfigMap.v1' } as const

/** Fields whose objects no sync reads. */
const unread: Readonly<Record<string, string>> = {
  imagePullSecrets: 'the kubelet reads them, and a missing one is only tried',
}

/** Golden cases that report another problem first. */
const notClean: Readonly<Record<string, string>> = {
  'MCPServer/hostname-claimed': 'a server without its host name needs no certificate',
  'MCPOpenAPIServer/loopback-address': 'a forbidden address is reported first',
  'MCPAuthzConfig/decision-point-pair-mismatch': 'a pair that does not match is reported first',
  'MCPWebhookConfig/client-certificate-mismatch': 'a pair that does not match is reported first',
}

/** Fields whose missing object is reported by a condition only. */
const quiet: Readonly<Record<string, string>> = {
  'spec.exposure.ingress.tlsSecretName': 'cert-manager makes the Secret once the Ingress is there',
}

const fieldsOfKinds = new Map(
  referenceFields().map(({ kind, fields }) => [
    kind,
    fields.flatMap(({ path, field }) => {
      const resource = resourceOf(field)
      if (Object.hasOwn(unread, field) || (resource !== 'secrets' && resource !== 'configmaps')) return []
      return [{ path, resource } as const]
    }),
  ]),
)

/** Fields of objects with a free-form schema. */
fieldsOfKinds
  .get('MCPAuthzConfig')
  ?.push(
    { path: 'spec.config.http.ca_bundle_ref', resource: 'configmaps' },
    { path: 'spec.config.http.client_certificate_secret_ref', resource: 'secrets' },
    { path: 'spec.config.http.bearer_token_secret_ref', resource: 'secrets' },
  )

/** Returns the values at a path of the schema: `[]` matches every item, `{}` every member. */
function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  const [first, ...rest] = path
  if (value === undefined || value === null) return []
  if (first === undefined) return [value]
  if (first === '[]')
    return Array.isArray(value) ? value.flatMap((item: unknown) => valuesAt(item, rest)) : []
  if (typeof value !== 'object') return []
  if (first === '{}') return Object.values(value).flatMap((item: unknown) => valuesAt(item, rest))
  return valuesAt((value as Record<string, unknown>)[first], rest)
}

function referencesAt(parent: Stored, path: string): Reference[] {
  const [, ...members] = path.split('.')
  return valuesAt(parent['spec'], members).flatMap((value) => {
    if (typeof value === 'string') return [{ path, name: value, key: undefined, optional: false }]
    const { name, key, optional, type } = value as Record<string, unknown>
    if (path.endsWith('permissionProfile') && type !== 'configmap') return []
    if (typeof name !== 'string') return []
    return [{ path, name, key: typeof key === 'string' ? key : undefined, optional: optional === true }]
  })
}

function* requests(kind: string): Generator<{ readonly name: string; readonly request: GoldenRequest }> {
  const folder = join(import.meta.dirname, '..', kind.toLowerCase())
  for (const name of readdirSync(folder))
    yield { name, request: JSON.parse(readFileSync(join(folder, name, 'request.json'), 'utf8')) }
  for (const [index, manifest] of referenceManifests.entries()) {
    if (manifest.kind !== kind) continue
    const world = new World(hooks.settings)
      .apply(group, oidcConfig())
      .settle()
      .apply(structuredClone(manifest))
    const { name } = manifest.metadata
    const add = ({ related }: GoldenRequest): World =>
      world.apply(...Object.values(related).flatMap((objects) => Object.values(objects)))
    add(complete(kind, world.request(kind, name) as unknown as GoldenRequest)).ready()
    yield { name: `manifest ${index}`, request: world.request(kind, name) as unknown as GoldenRequest }
  }
}

/** Returns the request with every object that the parent names and the golden case omits. */
function complete(kind: string, request: GoldenRequest): GoldenRequest {
  const related = structuredClone(request.related)
  for (const { path, resource } of fieldsOfKinds.get(kind) ?? []) {
    for (const { name, key } of referencesAt(request.parent, path)) {
      const { namespace } = request.parent.metadata
      const group = (related[groups[resource]] ??= {})
      const object = (group[`${namespace}/${name}`] ??= {
        apiVersion: 'v1',
        kind: resource === 'secrets' ? 'Secret' : 'ConfigMap',
        metadata: { name, namespace, uid: name, resourceVersion: '1' },
      })
      const keys = key === undefined ? ['ca.crt', 'tls.crt', 'tls.key', 'authz.json'] : [key]
      const added = Object.fromEntries(keys.map((one) => [one, contentOf(path, one)]))
      object['data'] = { ...added, ...(object['data'] as object | undefined) }
    }
  }
  return { ...request, related }
}

function contentOf(path: string, key: string): string {
  if (key === 'tls.crt' || key === 'tls.key') return Buffer.from(servingCertificate[key]).toString('base64')
  if (path.endsWith('authzConfig.configMap'))
    return JSON.stringify({ type: 'cedarv1', cedar: { policies: [policy] } })
  return path.endsWith('permissionProfile') ? '{}' : 'dGV4dA=='
}

/** Returns the request of an object without conditions, so that every condition of the response is new. */
function syncOf(kind: string, request: GoldenRequest) {
  const hook = hooks.byKind(kind)
  if (!hook) throw new Error(`no hook for ${kind}`)
  const response = hook.sync(request)
  const { conditions = [] } = response.status as { readonly conditions?: readonly Condition[] }
  return { response, conditions, events: hook.events(request, response) }
}

const told = new Map<string, Set<string>>()

for (const [kind, fields] of fieldsOfKinds) {
  for (const { name: golden, request: recorded } of requests(kind)) {
    if (Object.hasOwn(notClean, `${kind}/${golden}`)) continue
    const request = complete(kind, recorded)
    for (const { path, resource } of fields) {
      for (const { name, optional } of referencesAt(request.parent, path)) {
        const group = groups[resource]
        const key = `${request.parent.metadata.namespace}/${name}`
        const object = request.related[group]?.[key]
        if (!object) continue
        for (const change of ['object', 'keys'] as const) {
          const { [key]: _, ...others } = request.related[group] ?? {}
          const empty = { [key]: { ...object, data: {}, stringData: undefined } }
          const related = {
            ...request.related,
            [group]: change === 'object' ? others : { ...others, ...empty },
          }
          t.test(`${kind}/${golden}: ${path}: without its ${change}`, async (t) => {
            const before = syncOf(kind, request)
            const { response, conditions, events } = syncOf(kind, { ...request, related })
            const naming = conditions.filter(
              ({ message }) =>
                message.includes(name) &&
                !before.conditions.some((condition) => condition.message === message),
            )
            t.ok(naming.length > 0, `a condition names ${name}`)
            told.set(kind, (told.get(kind) ?? new Set()).add(path))
            const given = new Set(response.children.map((child) => `${child.kind} ${child.metadata.name}`))
            for (const running of Object.values(request.children).flatMap((objects) =>
              Object.values(objects),
            ))
              t.ok(given.has(`${running.kind} ${running.metadata.name}`), `${running.kind} stays`)
            if (optional) return undefined
            t.ok(
              naming.some(
                ({ type, status }) => (type === 'Reconciling' || type === 'Stalled') === (status === 'True'),
              ),
              'only a True condition reports a problem',
            )
            if (Object.hasOwn(quiet, path)) return undefined
            t.ok(
              events.some(({ type, message }) => type === 'Warning' && message.includes(name)),
              'a Warning Event reports it',
            )
            return undefined
          })
        }
      }
    }
  }
}

t.test(
  'missing references: each field of the schemas that names a Secret or ConfigMap is tested',
  async (t) => {
    for (const [kind, fields] of fieldsOfKinds)
      for (const { path } of fields) t.ok(told.get(kind)?.has(path), `${kind} ${path}`)
  },
)
