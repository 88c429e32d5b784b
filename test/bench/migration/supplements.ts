/**
 * Objects that a file refers to but does not contain: Secrets and ConfigMaps with invented values, and objects of other
 * files. No example could run without them.
 */
import { issueCertificate } from '../../../hooks/certificates/issue.ts'
import type { Manifest } from './files.ts'

type Fields = Readonly<Record<string, unknown>>

const kindsOfFields: Readonly<Record<string, string>> = {
  groupRef: 'MCPGroup',
  oidcConfigRef: 'MCPOIDCConfig',
  authzConfigRef: 'MCPAuthzConfig',
  externalAuthConfigRef: 'MCPExternalAuthConfig',
  authServerRef: 'MCPExternalAuthConfig',
  toolConfigRef: 'MCPToolConfig',
  telemetryConfigRef: 'MCPTelemetryConfig',
  embeddingServerRef: 'EmbeddingServer',
  webhookConfigRef: 'MCPWebhookConfig',
}
const ofSecrets = /^(secrets|.*[sS]ecret(Key)?Refs?|passwordRef|usernameRef|initialAccessTokenRef)$/
const ofConfigMaps = /^configMap(Key)?(Ref)?$/
/** Used when no file contains an object with the name. */
const inventedSpecs: Readonly<Record<string, object>> = {
  MCPGroup: {},
  MCPOIDCConfig: { type: 'inline', inline: { issuer: 'https://auth.example.com' } },
}

/** Returns the objects to apply before those of a file; `others` are the objects of all files. */
export async function supplementsOf(
  own: readonly Manifest[],
  others: readonly Manifest[],
): Promise<readonly Manifest[]> {
  const missing = new Map<string, Manifest>()
  const known = new Set(own.map(idOf))
  const values = new Map<
    string,
    { readonly kind: string; readonly name: string; readonly keys: Set<string> }
  >()
  const open = [...own]
  for (let next = open.shift(); next; next = open.shift()) {
    for (const { field, name, key } of namesIn(next.spec, '')) {
      const kind = kindsOfFields[field]
      const data = ofSecrets.test(field) ? 'Secret' : ofConfigMaps.test(field) ? 'ConfigMap' : undefined
      const id = `${kind ?? data}/${name}`
      if ((kind ?? data) === undefined || known.has(id)) continue
      if (data !== undefined) {
        const entry = values.get(id) ?? { kind: data, name, keys: new Set() }
        if (key !== undefined) entry.keys.add(key)
        values.set(id, entry)
        continue
      }
      known.add(id)
      const found = others.find((object) => idOf(object) === id) ?? invented(kind ?? '', name)
      missing.set(id, found)
      open.push(found)
    }
  }
  return [...(await Promise.all([...values.values()].map(withValues))), ...missing.values()]
}

export function idOf({ kind, metadata }: Manifest): string {
  return `${kind}/${metadata.name}`
}

function invented(kind: string, name: string): Manifest {
  const spec = inventedSpecs[kind]
  if (!spec) throw new Error(`no file has ${kind}/${name}`)
  return { apiVersion: 'gatehouse.dev/v1beta1', kind, metadata: { name }, spec }
}

async function withValues({ kind, name, keys }: { kind: string; name: string; keys: ReadonlySet<string> }) {
  const day = { now: new Date(), lifetimeMs: 86_400_000 }
  const { ca, key: pem } = await issueCertificate({ names: ['example.com'], ...day })
  const valueOf = (field: string) =>
    /ca|crt|cert/i.test(field)
      ? ca
      : /pem|private|signing/i.test(field)
        ? pem
        : 'a-value-of-thirty-two-characters!'
  const entries = [...keys].map((field) => [field, valueOf(field)])
  const member = kind === 'Secret' ? 'stringData' : 'data'
  return { apiVersion: 'v1', kind, metadata: { name }, [member]: Object.fromEntries(entries) }
}

interface Named {
  readonly field: string
  readonly name: string
  readonly key: string | undefined
}

function* namesIn(value: unknown, field: string): Generator<Named> {
  if (typeof value !== 'object' || value === null) return
  const { name, key } = value as Fields
  if (typeof name === 'string') yield { field, name, key: typeof key === 'string' ? key : undefined }
  for (const [inner, item] of Object.entries(value))
    yield* namesIn(item, Array.isArray(value) ? field : inner)
}
