/**
 * Serves skills. Lists the skills of all backends, returns single skills and directories, and checks every read of a
 * skill file against the skill's entry.
 *
 * A skill belongs to one backend, and its files are read only from this backend. Policies must permit `get_skill` on a
 * skill before a client can read any of its files. Bytes are never changed, because their digests would no longer match.
 * Source: MCP Skills; docs/guides/skills.md.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  indexIn,
  inTurns,
  JsonError,
  JsonObject,
  readMembers,
  type TurnWork,
  workOn,
} from '../../../mcp/index.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Cursors } from '../../catalog/cursors.ts'
import type { Listing } from '../../catalog/listing.ts'
import { isSkillAddress } from '../../catalog/names/skill-addresses.ts'
import { backendUri } from '../../catalog/names/ui-addresses.ts'
import { renderPage } from '../../catalog/pages.ts'
import { type ResultChanges, withChangedResources } from '../../catalog/result-resources.ts'
import type { RefusedEntry } from '../../model/catalog/entries.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import type { Link, Operation, Perform, Target } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { OperationClient } from '../../model/session.ts'
import { changeTaskResult } from '../../model/task.ts'
import { unavailableError } from '../../model/unavailable.ts'
import { directoryIn, directoryResult, shownChildren } from './directories.ts'
import { isSafeUri, type Skill } from './entry.ts'
import type { SkillReports } from './reports.ts'
import type { SkillLibrary, SkillList, SkillSource } from './library.ts'
import { declaresSkills, listsDirectories, type SkillListings } from './listing.ts'
import { unknownSkill } from './target.ts'
import { containsFile } from './verify.ts'

export interface SkillParts {
  readonly listings: SkillListings
  readonly library: SkillLibrary
  /** Returns the catalog that a client sees. Rejects if a missing backend makes requests fail. */
  readonly view: (client: OperationClient) => Promise<Catalog>
  /** Returns the cached catalog. */
  readonly peek: (client: OperationClient) => Catalog
  /** Returns the lists that a client shares with other clients, and the time limit of a backend's requests. */
  readonly sourceOf: (
    backend: string,
    client: OperationClient,
  ) => Pick<SkillSource, 'key' | 'timeoutMs'> | undefined
  /** True if a list fails when one backend fails. */
  readonly failsWithoutAll: boolean
  /** Rejects with FORBIDDEN if policies do not permit `get_skill` on an address. Undefined without policies. */
  readonly requirePermission?: (operation: Operation, address: string) => Promise<void>
  /** Returns the error for a skill that pinning refuses, and reports the refusal. */
  readonly refusalError: (entry: RefusedEntry, method: string) => GatehouseError
  readonly cursors: Cursors
  readonly reports: Pick<SkillReports, 'listFailed' | 'sameName'>
}

export interface SkillLinks {
  /** For the methods of skills, and for reads of resources. */
  readonly skills: Link
  /** For tool calls, prompts, and late results of tasks. */
  readonly skillResults: Link
}

/** A file that a client reads: the backend's URI, and the address that the client sent. */
interface ReadFile {
  readonly uri: string
  readonly address: string
}

/** An entry can contain 512 files, so pages are smaller than those of other lists. */
const pageSize = 100
const maxTtlMs = 60_000

export function makeSkillLinks(parts: SkillParts): SkillLinks {
  const links = new Skills(parts)
  return {
    skills: (operation, next) => links.perform(operation, next),
    skillResults: (operation, next) => links.results(operation, next),
  }
}

class Skills {
  readonly #parts: SkillParts

  constructor(parts: SkillParts) {
    this.#parts = parts
  }

  perform(operation: Operation, next: Perform): Promise<Outcome> {
    const { method, target } = operation
    if (method === 'skills/list') return this.#list(operation, next)
    if (!target) return next(operation)
    if (method === 'skills/get') return this.#get(operation, target, next)
    return method === 'resources/read'
      ? this.#read(operation, target, next)
      : this.#readDirectory(operation, target, next)
  }

  async #list(operation: Operation, next: Perform): Promise<Outcome> {
    const { client, params } = operation
    const { view, failsWithoutAll, reports, cursors } = this.#parts
    const { listings } = await view(client)
    const lists: SkillList[] = []
    const failed: { readonly backend: string; readonly error: unknown }[] = []
    const read = async ({ backend }: Listing): Promise<void> => {
      const source = this.#source(backend, client, next)
      try {
        if (source) lists.push(await this.#parts.library.list(source))
      } catch (error) {
        reports.listFailed(backend, error)
        failed.push({ backend, error })
      }
    }
    await Promise.all(listings.filter(declaresSkills).map(read))
    if (failed.length > 0 && (failsWithoutAll || lists.length === 0)) {
      const cause = failed.map(({ error }) => error).find((error) => error instanceof Error)
      throw unavailableError(failed.map(({ backend }) => backend).sort(), { list: 'skills/list', cause })
    }
    const offered = lists.flatMap((list) => list.skills.filter(({ refused }) => !refused))
    const skills = offered.sort((a, b) => (a.address < b.address ? -1 : 1))
    this.#reportNames(skills)
    const ttlMs = failed.length > 0 ? 0 : Math.min(...lists.map((list) => list.ttlMs), maxTtlMs)
    const page = { era: client.era, cursor: params.text('cursor'), cursors, size: pageSize, ttlMs }
    return { kind: 'result', result: renderPage('skills', skills.map(entryOf), page) }
  }

  #reportNames(skills: readonly Skill[]): void {
    const byName = Map.groupBy(skills, ({ name }) => name)
    for (const [name, same] of byName)
      if (same.length > 1)
        this.#parts.reports.sameName(
          name,
          same.map(({ address }) => address),
        )
  }

  async #get(operation: Operation, { entry }: Target, next: Perform): Promise<Outcome> {
    operation.context.onRouted?.(entry.backend)
    const source = this.#source(entry.backend, operation.client, next)
    const { skill, ttlMs } = (source && (await this.#parts.library.get(source, entry.original))) ?? {}
    if (!skill) throw unknownSkill(entry.key)
    this.#requireApproved(skill, operation)
    const result = Buffer.from(`{"skill":${skill.json.toString()},"ttlMs":${ttlMs}}`)
    return { kind: 'result', result }
  }

  async #read(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const { backend } = target.entry
    const requested = operation.params.text('uri') ?? ''
    const uri = backendUri(target.entry, requested)
    const isAddress = isSkillAddress(requested)
    const listing = this.#listingOf(operation.client, backend)
    const source = this.#source(backend, operation.client, next)
    const mayBeSkill = source !== undefined && (!listing || declaresSkills(listing))
    if (mayBeSkill && isAddress && !isSafeUri(uri)) throw notFound(operation)
    const skill = mayBeSkill ? await this.#parts.library.skillAt(source, uri, { isAddress }) : undefined
    if (!skill || !source) {
      if (!isAddress) return next(operation)
      // Policies and locks apply to the URI of a resource, which the address of a skill must not evade.
      if (!isSkillAddress(uri)) throw notFound(operation)
      // Another spelling of a URI must not evade the checks of a skill.
      const isListed = listing?.resources.some(({ key, original = key }) => original === uri)
      if (mayBeSkill && !isListed) throw notFound(operation)
      return this.#shown(operation.method, backend, await next(withWholeResult(operation, target)))
    }
    await this.#parts.requirePermission?.(operation, skill.address)
    this.#requireApproved(skill, operation)
    const outcome = await next(withWholeResult(operation, target))
    if (outcome.kind !== 'result') return outcome
    if (!(await this.#isVerified(source, skill, uri, outcome.result)))
      throw new GatehouseError('BACKEND_PROTOCOL', {
        detail: `backend ${backend}: the content of the skill file does not match the digest in the skill's entry`,
      })
    return this.#shown(operation.method, backend, outcome, { uri, address: requested })
  }

  /** Reads the skill's entry again if the content differs, because the skill may have changed. */
  async #isVerified(source: SkillSource, skill: Skill, uri: string, result: Buffer): Promise<boolean> {
    if (await matches(skill, uri, result)) return true
    const found = await this.#parts.library.get(source, skill.uri)
    return found !== undefined && !found.skill.refused && matches(found.skill, uri, result)
  }

  /** Throws FORBIDDEN if pinning refuses the skill. */
  #requireApproved({ address, backend, uri, refused }: Skill, { method }: Operation): void {
    if (refused) throw this.#parts.refusalError({ key: address, backend, original: uri, refused }, method)
  }

  async #readDirectory(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const { backend, original: directory, key: address } = target.entry
    const { client, params } = operation
    const listing = this.#listingOf(client, backend)
    const source = this.#source(backend, client, next)
    const skill =
      source && isSafeUri(directory)
        ? await this.#parts.library.skillAt(source, directory, { isAddress: true })
        : undefined
    if (!skill) throw noDirectory(address)
    await this.#parts.requirePermission?.(operation, skill.address)
    this.#requireApproved(skill, operation)
    const addressOf = (uri: string): string | undefined =>
      this.#parts.listings.addresses.addressOf(backend, uri)
    if (!listing || !listsDirectories(listing)) {
      operation.context.onRouted?.(backend)
      if (params.text('cursor')) throw new GatehouseError('INVALID_PARAMS', { detail: 'invalid cursor' })
      const result = directoryIn(skill, directory, addressOf)
      if (!result) throw noDirectory(address)
      return { kind: 'result', result }
    }
    const outcome = await next(withWholeResult(operation, target))
    if (outcome.kind !== 'result') return outcome
    return readable(async () => {
      await workOn(outcome.result, readMembers(outcome.result))
      const result = new JsonObject(outcome.result)
      const resources = result.raw('resources') ?? Buffer.from('[]')
      const children = await inTurns(shownChildren(resources, directory, addressOf))
      return { kind: 'result' as const, result: directoryResult(result, children) }
    })
  }

  results(operation: Operation, next: Perform): Promise<Outcome> {
    const { target } = operation
    const { addresses, skillBackends } = this.#parts.listings
    const applies = addresses.backends && target && !target.run && skillBackends.has(target.entry.backend)
    return applies ? this.#shownResult(operation, target, next) : next(operation)
  }

  async #shownResult(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const { method, task } = operation
    const { backend } = target.entry
    const outcome = await next(withWholeResult(operation, target))
    return task
      ? changeTaskResult(method, outcome, (late) => this.#shown('tools/call', backend, late))
      : this.#shown(method, backend, outcome)
  }

  /** Returns an outcome with the addresses that clients see. */
  async #shown(method: string, backend: string, outcome: Outcome, read?: ReadFile): Promise<Outcome> {
    const { addresses } = this.#parts.listings
    if (outcome.kind !== 'result' || !addresses.backends) return outcome
    const { result } = outcome
    if (!read && !(await workOn(result, mayContainSkills(result)))) return outcome
    const changes: ResultChanges = {
      resource(item) {
        const uri = item.text('uri') ?? ''
        const own = uri === read?.uri ? read.address : undefined
        const address = own ?? (isSkillAddress(uri) ? addresses.addressOf(backend, uri) : undefined)
        return address === undefined ? item.bytes : item.with({ uri: JSON.stringify(address) })
      },
    }
    return readable(async () => ({
      ...outcome,
      result: await workOn(result, withChangedResources(method, result, changes)),
    }))
  }

  #listingOf(client: OperationClient, backend: string): Listing | undefined {
    return this.#parts.peek(client).listings.find((listing) => listing.backend === backend)
  }

  #source(backend: string, client: OperationClient, perform: Perform): SkillSource | undefined {
    const source = this.#parts.sourceOf(backend, client)
    return source && { ...source, backend, client, perform }
  }
}

/** An escaped character may hide an address. */
function* mayContainSkills(result: Buffer): TurnWork<boolean> {
  for (const sign of ['skill:', '\\u']) if ((yield* indexIn(result, sign, 0)) !== -1) return true
  return false
}

/** Compares a read with the entry of a skill. A dynamic skill has no digests. */
async function matches({ files }: Skill, uri: string, result: Buffer): Promise<boolean> {
  const file = files?.get(uri)
  return files ? file !== undefined && readable(() => containsFile(result, file)) : true
}

/** Rejects with BACKEND_PROTOCOL if a result is invalid. */
async function readable<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    throw cause instanceof JsonError ? new GatehouseError('BACKEND_PROTOCOL', { cause }) : cause
  }
}

function entryOf({ address, backend, uri, json }: Skill): CatalogEntry {
  return { key: address, backend, original: uri, json }
}

function withWholeResult(operation: Operation, target: Target): Operation {
  return { ...operation, target: { ...target, needsWholeResult: true } }
}

function noDirectory(address: string): GatehouseError {
  const detail = `${JSON.stringify(address)} is not a directory of a skill`
  return new GatehouseError('INVALID_PARAMS', { detail })
}

function notFound({ params }: Operation): GatehouseError {
  return new GatehouseError('RESOURCE_NOT_FOUND', { data: { uri: params.text('uri') } })
}
