/** Settings that old manifests hold inline and that are objects of their own now: OIDC, telemetry, tools. */
import { type Fields, fieldsOf, isFields } from '../../../../schemas/index.ts'
import type { MigrationDraft, Mutable, DraftPlace, ObjectContext } from './draft.ts'

/** Where a kind had its OIDC settings. */
export function convertInlineOidc(draft: MigrationDraft, pattern: string, context: ObjectContext): void {
  const [place] = draft.places(pattern)
  if (!place || !isFields(place.value)) return
  const { parent, key, value, path } = place
  delete parent[key]
  if ('oidcConfigRef' in parent) {
    draft.note(path, 'lost', 'oidcConfigRef is set as well; that one is used')
    return
  }
  const type = value['type'] === 'kubernetes' ? 'kubernetesServiceAccount' : (value['type'] ?? 'inline')
  if (type === 'configMap') {
    draft.note(
      path,
      'refused',
      'its settings are in a ConfigMap: write an MCPOIDCConfig with them, and name it in oidcConfigRef',
    )
    return
  }
  const { audience, scopes, ...settings } = fieldsOf(
    value[type === 'inline' ? 'inline' : 'kubernetes'] ?? value['kubernetesServiceAccount'],
  )
  const spec = {
    type,
    [type === 'inline' ? 'inline' : 'kubernetesServiceAccount']: withSecret(settings, draft, path, context),
  }
  const name = context.add('MCPOIDCConfig', `${nameOf(draft)}-oidc`, { spec })
  parent['oidcConfigRef'] = {
    name,
    ...(audience !== undefined && { audience }),
    ...(value['resourceUrl'] !== undefined && { resourceUrl: value['resourceUrl'] }),
    ...(scopes !== undefined && { scopes }),
  }
  draft.note(path, 'renamed', `is MCPOIDCConfig ${name} and oidcConfigRef`)
  if (audience === undefined)
    draft.note(path, 'refused', 'has no audience, without which any token of the issuer would be accepted')
}

/** A client secret in plain text moves into a Secret. */
function withSecret(settings: Fields, draft: MigrationDraft, path: string, context: ObjectContext): Fields {
  const { clientSecret, ...others } = settings
  if (typeof clientSecret !== 'string' || clientSecret === '') return others
  const key = 'client-secret'
  const name = context.add('Secret', `${nameOf(draft)}-oidc`, {
    type: 'Opaque',
    stringData: { [key]: clientSecret },
  })
  draft.note(`${path}.inline.clientSecret`, 'renamed', `is key ${key} of Secret ${name}`)
  return { ...others, clientSecretRef: { name, key } }
}

export function convertInlineTelemetry(draft: MigrationDraft, context: ObjectContext): void {
  const [place] = draft.places('spec.telemetry')
  if (!place || !isFields(place.value)) return
  const { openTelemetry, ...others } = place.value
  const { serviceName, ...settings } = fieldsOf(openTelemetry)
  const spec = { ...(openTelemetry !== undefined && { openTelemetry: settings }), ...others }
  const made = replaceByObject(draft, place, context, {
    kind: 'MCPTelemetryConfig',
    suffix: 'telemetry',
    ref: 'telemetryConfigRef',
    spec,
  })
  if (made && serviceName !== undefined) made['serviceName'] = serviceName
}

export function convertInlineTools(draft: MigrationDraft, field: string, context: ObjectContext): void {
  const [place] = draft.places(field)
  if (!place) return
  replaceByObject(draft, place, context, {
    kind: 'MCPToolConfig',
    suffix: 'tools',
    ref: 'toolConfigRef',
    spec: { toolsFilter: place.value },
  })
}

interface Replacement {
  readonly kind: string
  readonly suffix: string
  readonly ref: string
  readonly spec: Fields
}

/** Returns the reference that took the field's place; undefined when there was one already. */
function replaceByObject(
  draft: MigrationDraft,
  { parent, key, path }: DraftPlace,
  context: ObjectContext,
  { kind, suffix, ref, spec }: Replacement,
): Mutable | undefined {
  delete parent[key]
  if (ref in parent) {
    draft.note(path, 'lost', `${ref} is set as well; that one is used`)
    return undefined
  }
  const name = context.add(kind, `${nameOf(draft)}-${suffix}`, { spec })
  const made: Mutable = { name }
  parent[ref] = made
  draft.note(path, 'renamed', `is ${kind} ${name} and ${ref}`)
  return made
}

function nameOf(draft: MigrationDraft): string {
  const { name } = fieldsOf(draft.doc['metadata'])
  return typeof name === 'string' ? name : 'unnamed'
}
