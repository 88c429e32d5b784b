/** Converts ToolHive objects with the settings of these tests. */
import { validateResource } from '../../../hooks/index.ts'
import { type Migration, migrate, type SourceDocument } from '../../../runtime/tools/migration/convert.ts'

/** Returns documents as if read from a file, without line numbers. */
function documents(...docs: readonly Readonly<Record<string, unknown>>[]): SourceDocument[] {
  return docs.map((doc) => ({ doc, file: 'given.yaml', lineOf: () => 1 }))
}

export function convert(
  docs: readonly Readonly<Record<string, unknown>>[],
  tools: Readonly<Record<string, string>> = {},
): Migration {
  return migrate(documents(...docs), {
    violationsOf: (manifest) => validateResource(manifest).violations,
    tools: new Map(Object.entries(tools)),
  })
}

export function object(kind: string, spec: Readonly<Record<string, unknown>>, metadata = {}) {
  return {
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind,
    metadata: { name: 'one', ...metadata },
    spec,
  }
}

export function specs(migration: Migration) {
  return [...migration.files.values()].flat().map(({ kind, metadata, spec }) => ({ kind, metadata, spec }))
}

export function rowsOf(migration: Migration): readonly string[] {
  return migration.documents.flatMap(({ rows }) => rows.map(({ effect, field }) => `${effect} ${field}`))
}
