/**
 * Reverse references: finds the resources in the namespace that refer to an object.
 *
 * Specs are read through type guards, because referrers may be invalid. Referrers that are being deleted are ignored.
 * Members without pods are counted but not listed, because the status supports only three kinds of workloads.
 * Source: docs/reference/specification/external-auth.md#status, "status", "Incoming references".
 */
import { byText, type KindName, type WorkloadReference } from '../../schemas/index.ts'
import { namesOf, type ReferenceTable } from '../references/reference.ts'
import type { AnyContext } from '../sync/context.ts'
import { catalogueReferences } from './mcpcatalogue/references.ts'
import { proxyReferences } from './common/proxy/references.ts'
import { remoteReferences } from './common/remote-member.ts'
import { virtualServerReferences } from './virtualmcpserver/references.ts'

const tables = {
  MCPCatalogue: catalogueReferences,
  MCPServer: proxyReferences,
  MCPRemoteProxy: proxyReferences,
  MCPServerEntry: remoteReferences,
  MCPOpenAPIServer: remoteReferences,
  VirtualMCPServer: virtualServerReferences,
} as const satisfies Partial<Record<KindName, ReferenceTable<never>>>

/** Maps each reference field to the kind that it refers to. */
export const kindOfField: ReadonlyMap<string, KindName> = new Map(
  Object.values(tables)
    .flatMap((table: ReferenceTable<never>) => Object.values(table))
    .flatMap(({ names, kind }) =>
      names
        .filter((path) => path.startsWith('spec.'))
        .map((path) => [path.split('.').at(-2)?.replace('[]', '') ?? '', kind] as const),
    ),
)

/** Lists the kinds with a field that refers to objects of `kind`. */
export function kindsReferringTo(kind: KindName): readonly (keyof typeof tables)[] {
  return (Object.keys(tables) as (keyof typeof tables)[]).filter((referring) =>
    Object.values<{ readonly kind: KindName }>(tables[referring]).some(
      (reference) => reference.kind === kind,
    ),
  )
}

interface Referrers {
  readonly count: number
  /** Sorted by kind, then name. */
  readonly workloads: readonly WorkloadReference[]
}

/** Returns the resources that refer to the object being synced. */
export function referrersOf(context: AnyContext, kind: KindName): Referrers {
  const found = kindsReferringTo(kind)
    .toSorted(byText)
    .flatMap((referring) =>
      context
        .members(referring)
        .filter((object) => namesOf(tables[referring], kind, object).includes(context.name))
        .map(({ metadata: { name } }) => ({ kind: referring, name })),
    )
  return { count: found.length, workloads: found.filter(isWorkload) }
}

function isWorkload(reference: {
  readonly kind: keyof typeof tables
  readonly name: string
}): reference is WorkloadReference {
  return reference.kind !== 'MCPServerEntry' && reference.kind !== 'MCPOpenAPIServer'
}
