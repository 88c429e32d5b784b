/**
 * Reads and checks the entry of a skill, and writes the entry that clients see. An entry never refers to a URI outside
 * the skill's own directory, so no backend can refer to the files of another backend.
 * Source: MCP Skills, "Skill Entries".
 */
import { hiddenInLine, hiddenInText, isFields, type Fields } from '../../../../schemas/index.ts'
import {
  canonicalText,
  JsonError,
  JsonObject,
  readAhead,
  scanElements,
  type TurnWork,
} from '../../../mcp/index.ts'
import { joinedItems } from '../../catalog/pages.ts'
import type { PinReason } from '../../model/catalog/pinning.ts'

/** Limits for one skill. Hosts support skills up to these limits. */
const maxFiles = 512
const maxBytes = 16 * 1024 * 1024
/** Maximum size of an entry as JSON text. */
const maxEntryBytes = 1024 * 1024
const maxUriLength = 2_048
/** Work between two yields. */
const filesPerTurn = 16
const valuesPerTurn = 2_000
const maxSegments = 64
/** Maximum size of the frontmatter as JSON text. */
const maxFrontmatterBytes = 64 * 1024

/** Member of `_meta` that contains the name of the skill's backend. */
const backendKey = 'dev.gatehouse/backend'
const manifest = '/SKILL.md'
const digestPattern = /^sha256:[\da-f]{64}$/u

export interface SkillFile {
  readonly digest: string
  readonly size: number
}

export interface Skill {
  /** URI of the skill's SKILL.md at the backend. */
  readonly uri: string
  /** URI of the skill's SKILL.md as clients see it. */
  readonly address: string
  readonly backend: string
  readonly name: string
  readonly description: string
  /** The files by the backend's URI. Undefined for a dynamic skill. */
  readonly files: ReadonlyMap<string, SkillFile> | undefined
  /** The entry that clients see. */
  readonly json: Buffer
  /** The entry as the backend sent it. */
  readonly received: Buffer
  /** The reason why pinning refuses the skill. */
  readonly refused?: PinReason | undefined
}

export interface EntryRules {
  readonly backend: string
  readonly refuse: readonly string[]
  readonly addressOf: (uri: string) => string | undefined
}

/** The reason why a skill is not offered. */
export class SkillProblem {
  readonly uri: string
  readonly reason: string

  constructor(uri: string, reason: string) {
    this.uri = uri
    this.reason = reason
  }
}

/** Returns the URI of the directory that contains a SKILL.md, without a trailing slash. */
export function rootOf(uri: string): string {
  return uri.slice(0, -manifest.length)
}

/** True for a plain URI that ends with /SKILL.md. */
export function isManifest(uri: string): boolean {
  return uri.endsWith(manifest) && isSafeUri(uri)
}

export function manifestOf(root: string): string {
  return root + manifest
}

/** Reads an entry, and yields between its parts. Returns a SkillProblem if the entry is invalid or refused. */
export function* readSkill(json: Buffer, rules: EntryRules): TurnWork<Skill | SkillProblem> {
  let uri = ''
  try {
    if (json[0] !== 0x7b || json.length > maxEntryBytes)
      return new SkillProblem('', `the entry is not an object of at most ${maxEntryBytes} bytes`)
    yield* readAhead(json)
    const entry = new JsonObject(json)
    uri = entry.text('uri') ?? ''
    return yield* read(entry, uri, rules)
  } catch (error) {
    if (error instanceof JsonError || error instanceof SyntaxError)
      return new SkillProblem(uri, 'the entry is not valid JSON')
    throw error
  }
}

function* read(
  entry: JsonObject,
  uri: string,
  { backend, refuse, addressOf }: EntryRules,
): TurnWork<Skill | SkillProblem> {
  const problem = (reason: string): SkillProblem => new SkillProblem(uri, reason)
  const address = addressOf(uri)
  if (address === undefined || !isManifest(uri))
    return problem('uri must be a plain URI that ends with /SKILL.md')
  const frontmatterJson = entry.raw('frontmatter') ?? Buffer.from('null')
  if (frontmatterJson.length > maxFrontmatterBytes)
    return problem(`the frontmatter has more than ${maxFrontmatterBytes} bytes`)
  // Clients could use the value of a duplicate member that is not checked here.
  yield* canonicalText(frontmatterJson)
  const frontmatter: unknown = JSON.parse(frontmatterJson.toString())
  if (!isFields(frontmatter)) return problem('frontmatter must be an object')
  const { name, description } = frontmatter
  if (typeof name !== 'string' || typeof description !== 'string')
    return problem('frontmatter must contain a name and a description')
  if (nameIn(rootOf(uri)) !== name) return problem('the directory must have the same name as the skill')
  if (yield* hasHiddenText(frontmatter)) return problem('the frontmatter contains hidden characters')
  if (refuse.includes('allowedTools') && Object.hasOwn(frontmatter, 'allowed-tools'))
    return problem('the skill requests permission to use tools, which the configuration refuses')
  const raw = entry.raw('resources')
  const isDynamic = raw?.toString() === '"dynamic"'
  if (isDynamic && refuse.includes('dynamic'))
    return problem('the skill is dynamic, which the configuration refuses')
  const files = isDynamic ? undefined : yield* readFiles(raw, uri, addressOf)
  if (typeof files === 'string') return problem(files)
  const meta = entry.object('_meta')
  const own = { [backendKey]: JSON.stringify(backend) }
  const shown = entry.with({
    uri: JSON.stringify(address),
    ...(files && { resources: files.shown }),
    _meta: meta ? meta.with(own) : new JsonObject(Buffer.from('{}')).with(own),
  })
  return {
    uri,
    address,
    backend,
    name,
    description,
    files: files?.byUri,
    json: shown,
    received: Buffer.from(entry.bytes),
  }
}

interface ReadFiles {
  readonly byUri: ReadonlyMap<string, SkillFile>
  readonly shown: Buffer
}

/** Returns a description of the problem if the list of files is invalid. */
function* readFiles(
  raw: Buffer | undefined,
  uri: string,
  addressOf: EntryRules['addressOf'],
): TurnWork<ReadFiles | string> {
  if (raw?.[0] !== 0x5b) return 'resources must be a list or "dynamic"'
  const byUri = new Map<string, SkillFile>()
  const shown: Buffer[] = []
  const inside = `${rootOf(uri)}/`
  let total = 0
  for (const element of scanElements(raw)) {
    if (shown.length >= maxFiles) return `the skill has more than ${maxFiles} files`
    if (element[0] !== 0x7b) return 'each resource must be an object'
    if (shown.length % filesPerTurn === filesPerTurn - 1) yield
    const item = new JsonObject(element)
    const file = item.text('uri') ?? ''
    const digest = item.text('digest') ?? ''
    const size = item.value('size')
    const address = addressOf(file)
    if (!file.startsWith(inside) || !isSafeUri(file) || address === undefined)
      return 'each file must be inside the directory of the skill'
    if (!digestPattern.test(digest) || !isSize(size)) return 'each file must have a digest and a size'
    if (byUri.has(file)) return 'a file occurs twice'
    total += size
    if (total > maxBytes) return `the files of the skill are larger than ${maxBytes} bytes in total`
    byUri.set(file, { digest, size })
    shown.push(item.with({ uri: JSON.stringify(address) }))
  }
  if (!byUri.has(uri)) return 'resources must contain SKILL.md'
  return { byUri, shown: joinedItems(shown, { before: '[', between: ',', after: ']' }) }
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/**
 * True for a URI that every client resolves in the same way: without a query, a fragment, empty or relative segments,
 * encoded separators or hidden characters.
 */
export function isSafeUri(uri: string): boolean {
  if (uri.length > maxUriLength || /[?#\\\s]/u.test(uri) || uri.search(hiddenInLine) !== -1) return false
  const segments = uri.slice(uri.indexOf('://') + '://'.length).split('/')
  if (segments.length > maxSegments) return false
  return segments.every((segment) => {
    const plain = decoded(segment)
    return plain !== undefined && !['', '.', '..'].includes(plain) && !/[/\\]/u.test(plain)
  })
}

function nameIn(root: string): string | undefined {
  return decoded(root.slice(root.lastIndexOf('/') + 1))
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function* hasHiddenText(frontmatter: Fields): TurnWork<boolean> {
  let checked = 0
  const waiting: unknown[] = [frontmatter]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (++checked % valuesPerTurn === 0) yield
    if (typeof next === 'string' && next.search(hiddenInText) !== -1) return true
    if (typeof next !== 'object' || next === null) continue
    // A list may contain more elements than a function can take as arguments.
    for (const value of Object.values(next)) waiting.push(value)
    if (!Array.isArray(next)) for (const key of Object.keys(next)) waiting.push(key)
  }
  return false
}
