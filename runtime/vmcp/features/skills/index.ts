/** The skills of a configuration, and the methods about skills. */
import type { VmcpConfig } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import { SkillAddresses } from '../../catalog/names/skill-addresses.ts'
import { type LibraryOptions, SkillLibrary } from './library.ts'
import { SkillListings } from './listing.ts'
import { SkillReports } from './reports.ts'

export { skillFacts, skillTarget } from './target.ts'

const skillMethods: ReadonlySet<string> = new Set(['skills/list', 'skills/get', 'resources/directory/read'])

export function isSkillMethod(method: string): boolean {
  return skillMethods.has(method)
}

/** The parts of the skills that a reload replaces. */
export interface SkillShelf {
  readonly listings: SkillListings
  readonly library: SkillLibrary
  readonly reports: SkillReports
}

export interface SkillShelfParts {
  /** Names of all configured backends. */
  readonly backends: ReadonlySet<string>
  /** The only backend. Undefined if there are several backends. */
  readonly onlyBackend: string | undefined
  readonly events: Pick<Events, 'emit'>
  readonly now: () => number
  readonly refusalOf: LibraryOptions['refusalOf']
}

/** Returns undefined if skills are disabled. */
export function makeSkillShelf(
  { extensions }: VmcpConfig,
  { backends, onlyBackend, events, now, refusalOf }: SkillShelfParts,
): SkillShelf | undefined {
  const { enabled = false, refuse = [] } = extensions?.skills ?? {}
  if (!enabled) return undefined
  const addresses = new SkillAddresses(backends, onlyBackend)
  const reports = new SkillReports(events)
  return {
    listings: new SkillListings(addresses),
    library: new SkillLibrary({
      addresses,
      refuse,
      now,
      refusalOf,
      onProblem: (backend, { uri, reason }) => reports.refused(backend, uri, reason),
    }),
    reports,
  }
}
