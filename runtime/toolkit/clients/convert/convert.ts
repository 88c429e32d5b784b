/**
 * Converts clients' servers to manifests: a group, a virtual server in front of it, and one member per server.
 *
 * Validates each manifest with the webhook's code. The output is deterministic. Pure: does not start, download or write
 * anything.
 */
import { apiVersion, canonicalJson } from '../../../../schemas/index.ts'
import type { ClientEntry, Note } from '../entries/entry.ts'
import { printable, printableName } from '../entries/members.ts'
import { ConversionContext, NotTaken } from './context.ts'
import { ObjectNames, objectName } from './names.ts'
import type { ConvertOptions } from './options.ts'
import { remoteDraft } from './remote.ts'
import { type CollectedSecrets, SecretStore, type ConvertedManifest } from './secret-store.ts'
import { serverDraft } from './server.ts'

/**
 * taken: converted completely. partly: converted, but some settings are lost. same: a duplicate of another entry. off:
 * disabled, or nothing to convert.
 */
export type ConversionOutcome = 'taken' | 'partly' | 'same' | 'off' | 'not taken'

export interface ConvertedEntry {
  readonly entry: ClientEntry
  readonly outcome: ConversionOutcome
  /** `Kind/name` of the object for the entry. */
  readonly object: string | undefined
  /** Keys of Secrets that contain the entry's values. */
  readonly secrets: readonly string[]
  /** Reasons and remarks. Never contains values. */
  readonly notes: readonly string[]
}

export interface Conversion {
  readonly entries: readonly ConvertedEntry[]
  /** Members by name, excluding the group and the virtual server. */
  readonly members: readonly ConvertedManifest[]
  /** The group and the virtual server. Empty when there are no members. */
  readonly entrance: readonly ConvertedManifest[]
  readonly secrets: CollectedSecrets
}

interface ConvertedServer {
  readonly manifest: ConvertedManifest
  readonly allow: readonly string[] | undefined
  /** The clients whose files contain the server, and its name in each file, for the annotation. */
  readonly origins: string[]
}

const originAnnotation = 'gatehouse.dev/imported-from'

export function convertEntries(entries: readonly ClientEntry[], options: ConvertOptions): Conversion {
  const secrets = new SecretStore(options.secrets, options.group)
  const names = new ObjectNames()
  const byContent = new Map<string, ConvertedServer>()
  const converted = entries.map((entry): ConvertedEntry => {
    const { target } = entry
    const result = (
      outcome: ConversionOutcome,
      notes: readonly string[],
      object?: string,
      keys: readonly string[] = [],
    ) => {
      return { entry, outcome, object, secrets: keys, notes: notes.map(printable) }
    }
    if (target.kind === 'unusable') return result(target.harmless ? 'off' : 'not taken', [target.why])
    if (!entry.enabled && !options.includeDisabled)
      return result('off', ['the entry is disabled; use --include-disabled to convert it'])
    const content = contentOf(entry)
    const twin = byContent.get(content)
    if (twin) {
      twin.origins.push(originOf(entry))
      return result('same', [], idOf(twin.manifest))
    }
    const name = names.claim(objectName(entry.name))
    const context = new ConversionContext({ name, original: entry.name, annotations: {} }, options, secrets)
    try {
      const draft = target.kind === 'program' ? serverDraft(target, context) : remoteDraft(target, context)
      refuseInvalid(draft.manifest, options)
      byContent.set(content, { manifest: draft.manifest, allow: entry.allow, origins: [originOf(entry)] })
      const notes = [...entry.notes, ...draft.notes]
      const outcome = notes.some(({ loses }) => loses) ? 'partly' : 'taken'
      const keys = context.keys.map(({ name: secret, key }) => `${secret}/${key}`)
      return result(
        outcome,
        [...renameNotes(entry, name), ...notes.map(describe)],
        idOf(draft.manifest),
        keys,
      )
    } catch (error) {
      if (!(error instanceof NotTaken)) throw error
      context.forget()
      names.release(name)
      return result('not taken', [error.message])
    }
  })
  const servers = [...byContent.values()].toSorted((a, b) =>
    a.manifest.metadata.name < b.manifest.metadata.name ? -1 : 1,
  )
  return {
    entries: converted,
    members: servers.map(withOrigin),
    entrance: servers.length > 0 ? entranceOf(servers, options) : [],
    secrets: secrets.collected(),
  }
}

/** Returns a key that is the same for entries that differ only in name and location. */
function contentOf({ target, allow }: ClientEntry): string {
  return canonicalJson(JSON.parse(JSON.stringify([target, allow ?? null], mapsAsLists)))
}

function mapsAsLists(_key: string, value: unknown): unknown {
  return value instanceof Map ? [...value].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)) : value
}

function originOf({ source, name }: ClientEntry): string {
  return `${source.client}/${printableName(name)}`
}

function idOf({ kind, metadata }: ConvertedManifest): string {
  return `${kind}/${metadata.name}`
}

function renameNotes(entry: ClientEntry, name: string): readonly string[] {
  return entry.name === name ? [] : [`renamed to ${name}`]
}

function describe({ field, text }: Note): string {
  return `${field}: ${text}`
}

function refuseInvalid(manifest: ConvertedManifest, { violationsOf }: ConvertOptions): void {
  const [first] = violationsOf(manifest)
  if (first) throw new NotTaken(`${first.path} ${first.message}`)
}

function withOrigin({ manifest, origins }: ConvertedServer): ConvertedManifest {
  const { metadata } = manifest
  const from = [...new Set(origins)].toSorted((a, b) => (a < b ? -1 : 1)).join(', ')
  const annotations = { ...metadata.annotations, [originAnnotation]: from }
  return { ...manifest, metadata: { ...metadata, annotations } }
}

function entranceOf(servers: readonly ConvertedServer[], options: ConvertOptions): ConvertedManifest[] {
  const { group, incoming } = options
  const workloads = servers.map(({ manifest }) => manifest.metadata.name)
  const tools = servers.flatMap(({ manifest, allow }) =>
    allow === undefined ? [] : [{ workload: manifest.metadata.name, filter: allow }],
  )
  const aggregation =
    workloads.length > 1 || options.prefixOne
      ? { conflictResolution: 'prefix' }
      : { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: workloads } }
  return [
    {
      apiVersion,
      kind: 'MCPGroup',
      metadata: { name: group },
      spec: { description: options.description },
    },
    {
      apiVersion,
      kind: 'VirtualMCPServer',
      metadata: { name: group },
      spec: {
        groupRef: { name: group },
        incomingAuth:
          incoming.type === 'oidc'
            ? { type: 'oidc', oidcConfigRef: { name: incoming.config, audience: incoming.audience } }
            : { type: 'anonymous' },
        config: {
          aggregation: { ...aggregation, ...(tools.length > 0 && { tools }) },
          operational: { failureHandling: { partialFailureMode: 'best_effort' } },
        },
      },
    },
  ]
}
