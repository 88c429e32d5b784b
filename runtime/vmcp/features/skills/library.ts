/**
 * Reads skills from backends, and caches their entries for a short time. Clients that see the same lists share a cache,
 * and concurrent reads of one list are shared.
 * Source: MCP Skills, "Listing Skills" and "Getting a Skill".
 */
import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { byText, GatehouseError } from '../../../../schemas/index.ts'
import {
  atOnce,
  inTurns,
  JsonError,
  JsonObject,
  readMembers,
  rpcCode,
  visitElementsInTurns,
  workOn,
} from '../../../mcp/index.ts'
import type { SkillAddresses } from '../../catalog/names/skill-addresses.ts'
import type { PinReason } from '../../model/catalog/pinning.ts'
import { type Operation, ownOperation, type Perform } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { OperationClient } from '../../model/session.ts'
import { isManifest, isSafeUri, manifestOf, readSkill, rootOf, type Skill, SkillProblem } from './entry.ts'

/** Limits for the list of one backend. */
const maxSkills = 1_000
const maxListBytes = 8 * 1024 * 1024
const maxPages = 100
/** Entries below this size are read in one turn. */
const smallEntryBytes = 4 * 1024
/** Maximum size of all cached entries as JSON text. */
const maxCachedBytes = 64 * 1024 * 1024
const maxCachedLists = 10_000
const fixedSize = 500
/** Limits for the lifetime that a backend suggests for its list. */
const minFreshMs = 1_000
const maxFreshMs = 60_000
/** Time for which an unlisted entry is cached. The result that a skill does not exist is cached for the same time. */
const foundMs = 30_000
/** Time after which the read of a list yields to other work. */
const turnMs = 5
/** Maximum number of directories above a file that are checked for an unlisted skill. */
const maxDepth = 8

export interface SkillList {
  /** Sorted by address. */
  readonly skills: readonly Skill[]
  readonly ttlMs: number
  /** Directories of listed skills that are not offered because their entries are refused. */
  readonly refused: ReadonlySet<string>
}

/** A backend and a client for which skills are read. `perform` sends requests to the backend. */
export interface SkillSource {
  readonly backend: string
  /** Equal for clients that see the same lists of the backend. */
  readonly key: string
  readonly client: OperationClient
  readonly timeoutMs: number
  readonly perform: Perform
}

export interface LibraryOptions {
  readonly addresses: SkillAddresses
  readonly refuse: readonly string[]
  readonly now: () => number
  /** Compares an entry with the backend's lock. Resolves to the reason why the skill is refused. */
  readonly refusalOf: (backend: string, uri: string, json: Buffer) => Promise<PinReason | undefined>
  readonly onProblem: (backend: string, problem: SkillProblem) => void
}

interface CachedList extends SkillList {
  readonly until: number
}

interface FoundSkill {
  readonly skill: Skill | 'none' | 'refused'
  readonly until: number
}

export class SkillLibrary {
  readonly #options: LibraryOptions
  readonly #lists = new LRUCache<string, CachedList>({
    max: maxCachedLists,
    maxSize: maxCachedBytes,
    sizeCalculation: ({ skills, refused }) =>
      fixedSize +
      [...refused].reduce((sum, root) => sum + root.length, 0) +
      skills.reduce((sum, skill) => sum + sizeOf(skill), 0),
  })
  readonly #reading = new Map<string, Promise<CachedList>>()
  /** Skills that no list contains. The value is `none` if the backend has no such skill. */
  readonly #found = new LRUCache<string, FoundSkill>({
    max: maxCachedLists,
    maxSize: maxCachedBytes,
    sizeCalculation: ({ skill }, key) =>
      fixedSize + key.length + (typeof skill === 'string' ? 0 : sizeOf(skill)),
  })

  constructor(options: LibraryOptions) {
    this.#options = options
  }

  /** Returns the skills that a backend lists. Rejects if the backend does not return a list. */
  async list(source: SkillSource): Promise<SkillList> {
    const key = JSON.stringify([source.backend, source.key])
    const known = this.#lists.get(key)
    if (known && known.until > this.#options.now()) return known
    const reading = this.#reading.get(key) ?? this.#readList(source)
    this.#reading.set(key, reading)
    try {
      const list = await reading
      this.#lists.set(key, list)
      return list
    } finally {
      if (this.#reading.get(key) === reading) this.#reading.delete(key)
    }
  }

  async #readList(source: SkillSource): Promise<CachedList> {
    const skills = new Map<string, Skill>()
    const refused = new Set<string>()
    const cursors = new Set<string>()
    let ttlMs = maxFreshMs
    let bytes = 0
    let began = performance.now()
    let cursor: string | undefined
    for (let page = 0; page < maxPages; page++) {
      const params = cursor === undefined ? {} : { cursor }
      const result = await resultOf(source, await send(source, 'skills/list', params))
      ttlMs = Math.min(ttlMs, lifetimeIn(result))
      for (const json of await elementsIn(source, result, 'skills')) {
        bytes += json.length
        if (skills.size + refused.size >= maxSkills || bytes > maxListBytes) {
          const reason = `only the first ${skills.size} skills are listed; the limits are ${maxSkills} skills and ${maxListBytes} bytes`
          this.#options.onProblem(source.backend, new SkillProblem('', reason))
          return this.#listOf(skills, refused, ttlMs)
        }
        const skill = await this.#read(source, json)
        if (!(skill instanceof SkillProblem)) skills.set(skill.uri, skill)
        else if (isManifest(skill.uri)) refused.add(rootOf(skill.uri))
        if (performance.now() - began < turnMs) continue
        await setImmediate()
        began = performance.now()
      }
      cursor = result.text('nextCursor')
      if (cursor === undefined || cursor === '' || cursors.has(cursor)) break
      cursors.add(cursor)
    }
    return this.#listOf(skills, refused, ttlMs)
  }

  #listOf(skills: ReadonlyMap<string, Skill>, refused: ReadonlySet<string>, ttlMs: number): CachedList {
    return {
      refused,
      skills: [...skills.values()].sort((a, b) => byText(a.address, b.address)),
      ttlMs,
      until: this.#options.now() + Math.max(ttlMs, minFreshMs),
    }
  }

  async #read(source: SkillSource, json: Buffer): Promise<Skill | SkillProblem> {
    const { backend } = source
    const { addresses, refuse, onProblem, refusalOf } = this.#options
    const rules = { backend, refuse, addressOf: (uri: string) => addresses.addressOf(backend, uri) }
    const work = readSkill(json, rules)
    const skill = json.length < smallEntryBytes ? atOnce(work) : await inTurns(work)
    if (!(skill instanceof SkillProblem)) {
      const refused = await readable(source, () => refusalOf(backend, skill.uri, json))
      return refused ? { ...skill, refused } : skill
    }
    onProblem(backend, skill)
    return skill
  }

  /**
   * Reads the current entry of a skill from its backend. `uri` is the backend's URI of the SKILL.md. Returns undefined if
   * the backend has no such skill, or if the skill is not offered.
   */
  async get(
    source: SkillSource,
    uri: string,
  ): Promise<{ readonly skill: Skill; readonly ttlMs: number } | undefined> {
    if (!isManifest(uri)) return undefined
    const key = JSON.stringify([source.backend, source.key, uri])
    const outcome = await send(source, 'skills/get', { uri })
    const result = isNotFound(outcome) ? undefined : await resultOf(source, outcome)
    const raw = result?.raw('skill')
    const read = raw && (await this.#read(source, raw))
    const skill = read instanceof SkillProblem || read?.uri !== uri ? undefined : read
    const found = skill ?? (read instanceof SkillProblem ? 'refused' : 'none')
    this.#found.set(key, { skill: found, until: this.#options.now() + foundMs })
    return result && skill && { skill, ttlMs: lifetimeIn(result) }
  }

  /**
   * Returns the skill whose directory contains a URI: the innermost listed skill or, if the client uses an address of a
   * skill, the innermost skill that the backend does not list. Rejects with RESOURCE_NOT_FOUND if the skill's entry is
   * refused.
   */
  async skillAt(
    source: SkillSource,
    uri: string,
    { isAddress }: { readonly isAddress: boolean },
  ): Promise<Skill | undefined> {
    const { skills, refused } = await this.list(source)
    const roots = new Map(skills.map((skill) => [rootOf(skill.uri), skill]))
    const above = directoriesOf(uri)
    for (const directory of above) {
      const listed = roots.get(directory)
      if (listed) return listed
      if (refused.has(directory)) throw notFound()
    }
    if (!isAddress) return undefined
    if (above.length > maxDepth || !isSafeUri(uri)) throw notFound()
    for (const directory of above) {
      const skill = await this.#find(source, manifestOf(directory))
      if (skill === 'refused') throw notFound()
      if (skill !== 'none') return skill
    }
    return undefined
  }

  async #find(source: SkillSource, uri: string): Promise<FoundSkill['skill']> {
    const key = JSON.stringify([source.backend, source.key, uri])
    const known = this.#found.get(key)
    if (known && known.until > this.#options.now()) return known.skill
    await this.get(source, uri)
    return this.#found.get(key)?.skill ?? 'none'
  }
}

/** Size of a skill in memory. */
function sizeOf({ json, received }: Skill): number {
  return json.length + received.length
}

function notFound(): GatehouseError {
  return new GatehouseError('RESOURCE_NOT_FOUND')
}

/** Returns a URI and the directories above it, innermost first. */
function directoriesOf(uri: string): readonly string[] {
  const start = uri.indexOf('://') + '://'.length
  const directories: string[] = []
  for (let end = uri.length; end > start; end = uri.lastIndexOf('/', end - 1))
    directories.push(uri.slice(0, end))
  return directories
}

function send(
  { client, backend, timeoutMs, perform }: SkillSource,
  method: string,
  params: object,
): Promise<Outcome> {
  const operation: Operation = ownOperation(client, method, params, AbortSignal.timeout(timeoutMs))
  const original = 'uri' in params ? String(params.uri) : method
  const entry = { key: original, backend, original, json: Buffer.from('{}') }
  return perform({ ...operation, target: { entry, changes: {}, needsWholeResult: true } })
}

/** Rejects with BACKEND_PROTOCOL if the outcome is not a result. */
async function resultOf(source: SkillSource, outcome: Outcome): Promise<JsonObject> {
  if (outcome.kind !== 'result') throw unreadable(source)
  const { result } = outcome
  return readable(source, async () => {
    await workOn(result, readMembers(result))
    return new JsonObject(result)
  })
}

/** Returns the elements of a list. Rejects with BACKEND_PROTOCOL if the member is not a list. */
async function elementsIn(
  source: SkillSource,
  result: JsonObject,
  member: string,
): Promise<readonly Buffer[]> {
  const raw = result.raw(member)
  if (raw?.[0] !== 0x5b) throw unreadable(source)
  const elements: Buffer[] = []
  const add = (from: number, to: number): undefined => void elements.push(raw.subarray(from, to))
  await readable(source, async () => workOn(raw, visitElementsInTurns(raw, add)))
  return elements
}

async function readable<T>(source: SkillSource, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    throw cause instanceof JsonError ? unreadable(source, cause) : cause
  }
}

function unreadable({ backend }: SkillSource, cause?: unknown): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', {
    detail: `backend ${backend}: the skills cannot be read`,
    cause,
  })
}

/** True if the backend does not have the skill, or does not support the method. */
function isNotFound(outcome: Outcome): boolean {
  const code = outcome.kind === 'error' ? new JsonObject(outcome.error).value('code') : undefined
  return code === rpcCode.invalidParams || code === rpcCode.methodNotFound || code === resourceNotFound
}

/** Code for unknown resources in the session era. */
const resourceNotFound = -32002

function lifetimeIn(result: JsonObject): number {
  const ttl = Number(result.raw('ttlMs')?.toString() ?? 0)
  return Number.isSafeInteger(ttl) && ttl > 0 ? Math.min(ttl, maxFreshMs) : 0
}
