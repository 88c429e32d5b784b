/** Converts the chosen remote or package to manifests, with the code that `gatehouse import` uses. */
import { validateResource } from '../../../hooks/index.ts'
import { type Conversion, convertEntries, type ConvertOptions } from '../../toolkit/clients/index.ts'
import { thisHost } from '../../toolkit/client-files/host.ts'
import type { ServerDocument } from './entry.ts'
import { EntryRejected } from './errors.ts'
import type { ChosenTarget } from './target.ts'

const originAnnotation = 'gatehouse.dev/imported-from'
const registryAnnotation = 'gatehouse.dev/registry-server'

export interface ServerManifests {
  readonly member: Conversion['members'][number]
  readonly secret: Conversion['secrets']['manifests'][number] | undefined
  /** Keys of the Secret whose values the user must enter. */
  readonly openKeys: ReadonlySet<string>
  /** The group and a virtual server without a login. */
  readonly entrance: Conversion['entrance']
  readonly notes: readonly string[]
}

/** Throws EntryRejected when the manifest would be invalid or would lose a setting of the entry. */
export function serverManifests(
  { name, version }: ServerDocument,
  chosen: ChosenTarget,
  { object, group }: { readonly object: string; readonly group: string },
): ServerManifests {
  const options: ConvertOptions = {
    group,
    description: 'Servers from a registry',
    incoming: { type: 'anonymous' },
    secrets: 'manifest',
    plain: new Set(chosen.plain),
    images: new Map(),
    keepSecretArgs: false,
    includeDisabled: false,
    allowLoopback: false,
    prefixOne: true,
    resolve: () => undefined,
    home: thisHost().home,
    violationsOf: (manifest) => validateResource(manifest).violations,
  }
  const { target } = chosen
  const source = { client: 'plain', scope: 'file', file: name } as const
  const { entries, members, entrance, secrets } = convertEntries(
    [{ source, name: object, enabled: true, target, allow: undefined, notes: [] }],
    options,
  )
  const [entry] = entries
  const [member] = members
  const notes = entry?.notes ?? []
  if (!member || entry?.outcome !== 'taken')
    throw new EntryRejected(`${name}: the entry cannot be converted:\n${notes.join('\n')}`)
  const { [originAnnotation]: _, ...annotations } = member.metadata.annotations ?? {}
  const metadata = {
    ...member.metadata,
    annotations: { ...annotations, [registryAnnotation]: `${name}@${version}` },
  }
  return {
    member: { ...member, metadata },
    secret: secrets.manifests[0],
    openKeys: new Set(secrets.missing.map(({ key }) => key)),
    entrance,
    notes,
  }
}
