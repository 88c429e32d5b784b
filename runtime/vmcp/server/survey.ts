/**
 * Lists the items of all backends in a configuration, as seen by a client without capabilities, and compares the items
 * with the locks. This module is used only by commands and does not serve clients.
 */
import { byText, invalidConfig, type RuntimeToolLock } from '../../../schemas/index.ts'
import type { VmcpConfig } from '../../config/index.ts'
import { localIssuer, type Log, makeCaller } from '../../net/index.ts'
import { makeEvents } from '../../observe/index.ts'
import type { Listing } from '../catalog/listing.ts'
import { digestsOf } from '../catalog/pinning/digest.ts'
import { send } from '../call/send.ts'
import { manifestOf } from '../features/skills/entry.ts'
import { declaresSkills } from '../features/skills/listing.ts'
import type { Perform } from '../model/operation.ts'
import { compileLocks } from '../catalog/pinning/compile.ts'
import { evaluate, pinnableItems } from '../catalog/pinning/evaluate.ts'
import { detailOf, summarize, type PinDetail, type PinReport } from '../catalog/pinning/report.ts'
import { type SurveyedPage, surveyPages } from '../features/apps/page-survey.ts'
import { noAbilities } from '../model/client.ts'
import { systemClock } from '../model/time/clock.ts'
import { makeObservation } from './observation.ts'
import type { OperationClient } from '../model/session.ts'
import { VmcpEngine } from './engine/engine.ts'

export interface SurveyedBackend {
  readonly backend: string
  /** The backend's listing. Undefined if the backend could not be listed. */
  readonly listing: Listing | undefined
  /** The backend's pages, sorted by address. */
  readonly pages: readonly SurveyedPage[]
  readonly error: Error | undefined
}

export interface SurveyOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly version: string
  readonly log: Log
  /** Returns the addresses of pages to read in addition to the pages that tools and resources name. */
  readonly morePages?: (backend: string) => readonly string[]
}

/** Lists every backend in the configuration once, sorted by name, and reads its pages. `config.pinning` must be set. */
export async function surveyBackends(
  config: VmcpConfig,
  { env, version, log, morePages }: SurveyOptions,
): Promise<readonly SurveyedBackend[]> {
  const events = makeEvents(systemClock.now)
  const observation = await makeObservation(config, { env, version, log, events, clock: systemClock })
  const engine = new VmcpEngine(unchecked(config), {
    env,
    upstreamTokens: undefined,
    authServer: undefined,
    info: JSON.stringify({ name: 'gatehouse', version }),
    clock: systemClock,
    log,
    events,
    origin: () => '',
    watchers: () => [],
    onChange: () => {},
    stateSecret: () => undefined,
    performStep: () => Promise.reject(new Error('a survey does not run workflows')),
    observation,
  })
  try {
    engine.apply(unchecked(config))
    const { members, leftOut } = engine.core.parts
    const perform = send(engine.core)
    const seen = [...members].map(async ([name, { listings, backend }]): Promise<SurveyedBackend> => {
      const unlisted = { backend: name, listing: undefined, pages: [] }
      try {
        const listing = await listings.get(surveyor, { waitForFresh: true })
        const failed = listing.defects?.find(({ isTransient }) => isTransient)
        return failed
          ? { ...unlisted, error: new Error(failed.problem, { cause: failed.error }) }
          : {
              backend: name,
              listing: await withSkills(engine, listing, perform),
              pages: await surveyPages(backend, surveyor, listing, morePages?.(name) ?? []),
              error: undefined,
            }
      } catch (error) {
        return { ...unlisted, error: error instanceof Error ? error : new Error('unknown') }
      }
    })
    const states = engine.states()
    const unusable = leftOut.map((backend): SurveyedBackend => {
      const problems = states.find(({ name }) => name === backend)?.excluded ?? []
      return { backend, listing: undefined, pages: [], error: invalidConfig(problems.join('; ')) }
    })
    return [...(await Promise.all(seen)), ...unusable].sort((a, b) => byText(a.backend, b.backend))
  } finally {
    await engine.close()
    await observation.close()
  }
}

/** Turns off health checks, so that a survey sends only requests for lists. */
function unchecked(config: VmcpConfig): VmcpConfig {
  const { operational } = config
  const failureHandling = { ...operational.failureHandling, healthCheckInterval: '0s' }
  return { ...config, operational: { ...operational, failureHandling } }
}

/** Maximum number of skills with invalid entries that are named. */
const maxNamedSkills = 10

/** Adds the skills of a backend that declares skills. Rejects if the backend does not return its skills. */
async function withSkills(
  { core: { parts } }: VmcpEngine,
  listing: Listing,
  perform: Perform,
): Promise<Listing> {
  const { backend } = listing
  const settings = parts.members.get(backend)?.backend.settings
  if (!parts.skills || !settings || !declaresSkills(listing)) return listing
  const source = { backend, key: '', client: surveyor, timeoutMs: settings.timeoutMs, perform }
  const { skills, refused } = await parts.skills.library.list(source)
  const items = skills.map(async ({ uri, received }) => ({
    key: uri,
    json: received,
    pin: await digestsOf('skill', received, settings.pins?.ignore),
  }))
  const { violations } = listing
  const problems = [...refused].slice(0, maxNamedSkills).map((root) => ({
    kind: 'malformed' as const,
    subject: backend,
    message: `skill ${manifestOf(root)} from backend ${backend} is left out: its entry is invalid`,
  }))
  return {
    ...listing,
    skills: await Promise.all(items),
    violations: {
      ...violations,
      leftOut: violations.leftOut + refused.size,
      problems: [...violations.problems, ...problems],
    },
  }
}

const surveyor: OperationClient = {
  era: 'session',
  protocolVersion: '2025-11-25',
  caller: makeCaller({ issuer: localIssuer, subject: 'gatehouse', claims: {} }),
  abilities: noAbilities,
  info: undefined,
  headers: {},
  session: undefined,
}

export interface LockComparison extends Pick<PinReport, 'counts'> {
  readonly failure: string | undefined
  readonly drift: readonly PinDetail[]
}

/** Compares a listing with its backend's locks. */
export async function compareWithLocks(
  listing: Listing,
  locks: readonly RuntimeToolLock[],
): Promise<LockComparison> {
  const { backend } = listing
  const lock = await compileLocks(backend, locks)
  const { items, skills } = lock
  // A lock without skills does not compare them.
  const compared = skills ? listing : { ...listing, skills: [] }
  const whole = { ...lock, items: new Map([...items, ...(skills ?? [])]) }
  const evaluation = [evaluate(pinnableItems(compared), whole)]
  const { counts, drift } = summarize(backend, evaluation, { perCaller: false })
  const details = drift.flatMap(
    ({ kind, name }) => detailOf(backend, evaluation, { perCaller: false, kind, name }) ?? [],
  )
  return { counts, failure: lock.failure, drift: details }
}
