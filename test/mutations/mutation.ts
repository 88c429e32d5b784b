/**
 * The shape of the table of mutations: one row per change to a default, bound or rule of the specification. A test must
 * detect each change.
 */
import { requirements } from '../requirements/index.ts'

export interface Mutation {
  /** Requirement that the change breaks. */
  readonly id: string
  /** Changed file, relative to the repository. */
  readonly file: string
  /** Text that occurs exactly once in the file. */
  readonly from: string
  readonly to: string
  /** Test files that must fail, relative to `test/`. */
  readonly tests: readonly string[]
}

/** Chapters of the three documents, with the sections of the requirement tables that belong to each chapter. */
export const chapters: Readonly<Record<string, readonly string[]>> = {
  '1 what it does': ['service', 'scenarios', 'rules'],
  '1 endpoints': ['command', 'listener', 'incoming', 'outgoing', 'token exchange'],
  '1 authentication': ['authentication'],
  '1 errors and limits': ['errors', 'limits'],
  '2 fields': [
    ...['service', 'shared shapes', 'spec', 'cloudSts', 'bearerToken', 'headerInjection', 'upstreamInject'],
    ...['tokenExchange', 'obo', 'references'],
  ],
  '2 embedded server': [
    ...['embeddedAuthServer', 'cimd', 'tokenLifespans', 'storage', 'upstreamProviders', 'oidcConfig'],
    ...['oauth2Config', 'dcrConfig', 'identityFromToken', 'tokenResponseMapping', 'userInfo'],
  ],
  '2 status and states': ['status', 'states'],
  '2 endpoints': ['endpoints'],
  '2 authentication': ['authentication'],
  '2 errors': ['errors'],
  '2 limits': ['limits'],
  '2 versioning': ['versioning'],
  '3 spec': [
    ...['service', 'spec', 'incomingAuth', 'authzConfig', 'outgoingAuth', 'sessionStorage', 'references'],
  ],
  '3 spec.config': [
    ...['config', 'aggregation', 'audit', 'backends', 'codeMode', 'compositeTools', 'steps', 'optimizer'],
    ...['config.incomingAuth', 'config.outgoingAuth', 'operational', 'rateLimiting', 'telemetry'],
  ],
  '3 status and states': ['status', 'states'],
  '3 endpoints': ['endpoints'],
  '3 authentication': ['authentication'],
  '3 events': ['events'],
  '3 errors': ['errors'],
  '3 limits': ['limits'],
  '3 versioning': ['versioning'],
}

/** Returns the chapter of a requirement; undefined for an unknown id or a section without a chapter. */
export function chapterOf(id: string): string | undefined {
  const row = requirements.find((requirement) => requirement.id === id)
  if (!row) return undefined
  return Object.entries(chapters).find(
    ([chapter, sections]) => chapter.startsWith(`${row.doc} `) && sections.includes(row.section),
  )?.[0]
}

/** Returns the mutated text of a file. Throws when the old text does not occur exactly once. */
export function mutate(text: string, { id, file, from, to }: Mutation): string {
  const parts = text.split(from)
  if (parts.length !== 2)
    throw new Error(`${id}: ${file} contains the old text ${parts.length - 1} times instead of once`)
  return parts.join(to)
}
