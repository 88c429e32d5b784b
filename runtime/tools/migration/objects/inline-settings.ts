/** Converts the inline settings of old manifests that are now separate objects: OIDC, telemetry, tools. */
import { type Fields, fieldsOf, isFields } from '../../../../schemas/index.ts'
import type { MigrationDraft, Mutable, DraftField, ObjectContext } from './draft.ts'

/** Converts inline OIDC settings at `pattern`. */
export function convertInlineOidc(draft: MigrationDraft, pattern: string, context: ObjectContext): void {
  const [field] = draft.fieldsAt(pattern)
  if (!field || !isFields(field.value)) return
  const { parent, key, value, path } = field
  delete parent[key]
  if ('oidcConfigRef' in parent) {
    draft.note(path, 'lost', 'oidcConfigRef is also set, and takes precedence')
    return
  }
  const type = value['type'] === 'kubernetes' ? 'kubernetesServiceAccount' : (value['type'] ?? 'inline')
  if (type === 'configMap') {
    draft.note(
      path,
      'refused',
      'the settings are in a ConfigMap: write an MCPOIDCConfig with these settings, and refer to it in oidcConfigRef',
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
  draft.note(path, 'renamed', `becomes MCPOIDCConfig ${name} and oidcConfigRef`)
  if (audience === undefined)
    draft.note(path, 'refused', 'has no audience, so any token from the issuer would be accepted')
}

/** Moves a plain-text client secret to a Secret. */
function withSecret(settings: Fields, draft: MigrationDraft, path: string, context: ObjectContext): Fields {
  const { clientSecret, ...remaining } = settings
  if (typeof clientSecret !== 'string' || clientSecret === '') return remaining
  const key = 'client-secret'
  const name = context.add('Secret', `${nameOf(draft)}-oidc`, {
    type: 'Opaque',
    stringData: { [key]: clientSecret },
  })
  draft.note(`${path}.inline.clientSecret`, 'renamed', `is now key ${key} of Secret ${name}`)
  return { ...remaining, clientSecretRef: { name, key } }
}

export function convertInlineTelemetry(draft: MigrationDraft, context: ObjectContext): void {
  const [field] = draft.fieldsAt('spec.telemetry')
  if (!field || !isFields(field.value)) return
  const { openTelemetry, ...remaining } = field.value
  const { serviceName, ...settings } = fieldsOf(openTelemetry)
  const spec = { ...(openTelemetry !== undefined && { openTelemetry: settings }), ...remaining }
  const made = replaceByObject(draft, field, context, {
    kind: 'MCPTelemetryConfig',
    suffix: 'telemetry',
    ref: 'telemetryConfigRef',
    spec,
  })
  if (made && serviceName !== undefined) made['serviceName'] = serviceName
}

export function convertInlineTools(draft: MigrationDraft, pattern: string, context: ObjectContext): void {
  const [field] = draft.fieldsAt(pattern)
  if (!field) return
  replaceByObject(draft, field, context, {
    kind: 'MCPToolConfig',
    suffix: 'tools',
    ref: 'toolConfigRef',
    spec: { toolsFilter: field.value },
  })
}

interface Replacement {
  readonly kind: string
  readonly suffix: string
  readonly ref: string
  readonly spec: Fields
}

/**
 * Replaces a field with a reference to a new object and returns the reference. Undefined when a reference already
 * exists.
 */
function replaceByObject(
  draft: MigrationDraft,
  { parent, key, path }: DraftField,
  context: ObjectContext,
  { kind, suffix, ref, spec }: Replacement,
): Mutable | undefined {
  delete parent[key]
  if (ref in parent) {
    draft.note(path, 'lost', `${ref} is also set, and takes precedence`)
    return undefined
  }
  const name = context.add(kind, `${nameOf(draft)}-${suffix}`, { spec })
  const made: Mutable = { name }
  parent[ref] = made
  draft.note(path, 'renamed', `becomes ${kind} ${name} and ${ref}`)
  return made
}

function nameOf(draft: MigrationDraft): string {
  const { name } = fieldsOf(draft.doc['metadata'])
  return typeof name === 'string' ? name : 'unnamed'
}
