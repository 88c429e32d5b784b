/**
 * Documents of ToolHive as ours: objects of its API group, configuration files of its virtual server, run
 * configurations of servers, and files of policies. Pure: reading and writing is the caller's.
 */
export { type Migrated, type Migration, migrate, type SourceDocument } from './convert.ts'
export type { FieldEffect, MigrationOutcome } from './report/row.ts'
