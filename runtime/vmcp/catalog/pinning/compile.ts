/**
 * Prepares locks for comparison. Checks and hashes the approved definitions in the same way as items in a list. The
 * work is done in slices, so a large lock does not block other work. A lock that contains an error is not used at all.
 */
import type { RuntimeLockedItem, RuntimeToolLock } from '../../../../schemas/index.ts'
import { JsonError, JsonObject, nextShare, shareIsOver } from '../../../mcp/index.ts'
import { checkItem, callableTool } from '../items/check.ts'
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'
import { promptArgumentCheck, toolArgumentCheck } from './arguments.ts'
import { digestsOf } from './digest.ts'
import type { ArgumentCheck, PinKind } from '../../model/catalog/pinning.ts'
import { type Approved, type ApprovedForm, type CompiledLock, pinKey } from './types.ts'

/** The kinds of items in a backend's lists. */
type ListedKind = Exclude<PinKind, 'instructions' | 'skill'>

const maxNamed = 120

const strictestFirst = ['block', 'freeze', 'warn', 'observe'] as const

const lists = [
  ['tools', 'tool'],
  ['prompts', 'prompt'],
  ['resourceTemplates', 'resourceTemplate'],
] as const

/** Create the checks here, in slices, because it takes time to determine whether a schema is supported. */
const checks: Partial<Record<PinKind, (json: Buffer) => ArgumentCheck | undefined>> = {
  tool: toolArgumentCheck,
  prompt: promptArgumentCheck,
}

const catalogKinds = { tool: 'tools', prompt: 'prompts', resourceTemplate: 'templates' } as const

/** Combines a backend's locks. Never rejects. `failure` contains the error. */
export async function compileLocks(
  backend: string,
  locks: readonly RuntimeToolLock[],
): Promise<CompiledLock> {
  const ignore = locks.flatMap((lock) => lock.ignore ?? [])
  const compiler = new Compiler(ignore)
  for (const lock of locks) await compiler.add(lock)
  const settings = <K extends 'onChanged' | 'onNew' | 'onRemoved'>(name: K) =>
    compiler.resolveSetting(locks, name)
  const [onChanged, onNew, onRemoved] = [settings('onChanged'), settings('onNew'), settings('onRemoved')]
  return {
    backend,
    names: locks.flatMap(({ name }) => name ?? []),
    items: compiler.items,
    skills: locks.some(({ skills }) => skills) ? compiler.skills : undefined,
    ignore,
    accept: new Set(locks.flatMap(({ accept = [] }) => accept)),
    onChanged,
    onNew,
    onRemoved,
    failure: compiler.failures.length > 0 ? compiler.failures.join('; ') : undefined,
  }
}

class Compiler {
  readonly items = new Map<string, Approved>()
  readonly skills = new Map<string, Approved>()
  readonly failures: string[] = []
  readonly #ignore: readonly string[]

  constructor(ignore: readonly string[]) {
    this.#ignore = ignore
  }

  async add(lock: RuntimeToolLock): Promise<void> {
    if (lock.failure !== undefined) this.#fail(lock.failure)
    for (const [member, kind] of lists)
      for (const item of lock[member] ?? []) await this.#item(kind, member, item)
    for (const skill of lock.skills ?? []) await this.#skill(skill)
    if (lock.instructions !== undefined) await this.#instructions(lock.instructions)
  }

  /**
   * Returns a setting that several of a backend's locks may contain. If the locks disagree, the strictest value applies
   * and the backend is closed.
   */
  resolveSetting<K extends 'onChanged' | 'onNew' | 'onRemoved'>(
    locks: readonly RuntimeToolLock[],
    name: K,
  ): RuntimeToolLock[K] | undefined {
    const values = new Set<string>(locks.flatMap((lock) => lock[name] ?? []))
    if (values.size > 1) this.#fail(`the locks for this backend have different values for ${name}`)
    return strictestFirst.find((value) => values.has(value)) as RuntimeToolLock[K] | undefined
  }

  async #skill({ name, definition, variants = [] }: RuntimeLockedItem): Promise<void> {
    const path = `skills[${JSON.stringify(name.slice(0, maxNamed))}]`
    const key = pinKey('skill', name)
    const forms: ApprovedForm[] = []
    try {
      for (const text of [definition, ...variants]) {
        await this.#turn()
        const json = Buffer.from(text)
        if (new JsonObject(json).text('uri') !== name)
          this.#fail(`${path}: the definition belongs to another skill`)
        const digests = await digestsOf('skill', json, this.#ignore)
        forms.push({ digests, item: { key: name, json }, check: undefined })
      }
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      this.#fail(`${path}: invalid definition: ${error.message}`)
    }
    const [first, ...more] = forms
    if (this.skills.has(key)) this.#fail(`${path}: duplicate name in the locks for this backend`)
    else if (first) this.skills.set(key, { kind: 'skill', name, forms: [first, ...more] })
  }

  async #item(
    kind: ListedKind,
    member: string,
    { name, definition, variants = [] }: RuntimeLockedItem,
  ): Promise<void> {
    const path = `${member}[${JSON.stringify(name.slice(0, maxNamed))}]`
    if (this.items.has(pinKey(kind, name))) {
      this.#fail(`${path}: duplicate name in the locks for this backend`)
      return
    }
    const forms: ApprovedForm[] = []
    for (const text of [definition, ...variants]) {
      const form = await this.#form(kind, name, text)
      if (typeof form === 'string') this.#fail(`${path}: ${form}`)
      else forms.push(form)
    }
    const [first, ...more] = forms
    if (first) this.items.set(pinKey(kind, name), { kind, name, forms: [first, ...more] })
  }

  async #form(kind: ListedKind, name: string, text: string): Promise<ApprovedForm | string> {
    await this.#turn()
    const checked = checkItem(catalogKinds[kind], Buffer.from(text))
    if ('failure' in checked) return `invalid definition: ${checked.failure}`
    if (checked.key !== name)
      return `the definition belongs to a different item, ${JSON.stringify(checked.key.slice(0, maxNamed))}`
    try {
      const { json, sessionJson } = checked
      const item: CatalogItem = { key: name, json, ...(sessionJson && { sessionJson }) }
      const listed: CatalogItem | ToolItem | string = kind === 'tool' ? callableTool(item) : item
      if (typeof listed === 'string') return `invalid definition: ${listed}`
      return { digests: await digestsOf(kind, json, this.#ignore), item: listed, check: checks[kind]?.(json) }
    } catch (error) {
      if (error instanceof JsonError) return `invalid definition: ${error.message}`
      throw error
    }
  }

  async #instructions(text: string): Promise<void> {
    const json = Buffer.from(JSON.stringify(text))
    const form = { digests: await digestsOf('instructions', json), item: { key: '', json }, check: undefined }
    if (this.items.has(pinKey('instructions', '')))
      this.#fail('server.instructions: present in more than one lock for this backend')
    this.items.set(pinKey('instructions', ''), { kind: 'instructions', name: '', forms: [form] })
  }

  async #turn(): Promise<void> {
    if (shareIsOver()) await nextShare()
  }

  #fail(what: string): void {
    if (this.failures.length < 10) this.failures.push(what)
  }
}
