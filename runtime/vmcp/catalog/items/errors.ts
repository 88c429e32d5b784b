/**
 * Collects problems with the items in a backend's lists, so that they can be reported. A collection consists of
 * counts and the names of some affected items.
 */
import type { ItemKind, CatalogNotice } from '../../model/catalog/entries.ts'

export interface ListErrors {
  /** Number of items that are offered in a repaired form. */
  readonly repaired: number
  /** Number of items that are not offered. */
  readonly leftOut: number
  readonly problems: readonly CatalogNotice[]
}

export const noErrors: ListErrors = { repaired: 0, leftOut: 0, problems: [] }

/** Maximum number of named items for each kind of problem. Further items are counted but not named. */
const maxNamed = 10
const maxName = 100

const nouns: Readonly<Record<ItemKind, string>> = {
  tools: 'tool',
  resources: 'resource',
  templates: 'resource template',
  prompts: 'prompt',
}

interface ProblemGroup {
  count: number
  readonly named: CatalogNotice[]
}

export class ErrorCollector {
  readonly #backend: string
  readonly #notices: 'malformed' | 'withheld'
  readonly #repaired: ProblemGroup = { count: 0, named: [] }
  readonly #leftOut: ProblemGroup = { count: 0, named: [] }

  /** `notices` is the kind of all notices that this collector adds. */
  constructor(backend: string, notices: 'malformed' | 'withheld' = 'malformed') {
    this.#backend = backend
    this.#notices = notices
  }

  /** `key` is undefined if the item has no readable key. */
  leftOut(kind: ItemKind, key: string | undefined, why: string): void {
    this.#add(this.#leftOut, kind, key, (what) => `${what} is left out: ${why}`)
  }

  /** Adds a problem with the server's instructions, which do not belong to any list. */
  instructionsLeftOut(why: string): void {
    this.#leftOut.count++
    const message = `the instructions from backend ${this.#backend} are left out: ${why}`
    this.#leftOut.named.push({ kind: this.#notices, subject: this.#backend, message })
  }

  instructionsShortened(limit: number): void {
    this.#repaired.count++
    const message = `the instructions from backend ${this.#backend} are truncated to ${limit} characters`
    this.#repaired.named.push({ kind: this.#notices, subject: this.#backend, message })
  }

  /** Adds a problem with an extension that the server declares. */
  extensionIgnored(why: string): void {
    this.#repaired.count++
    const message = `backend ${this.#backend}: ${why}`
    this.#repaired.named.push({ kind: this.#notices, subject: this.#backend, message })
  }

  repaired(kind: ItemKind, key: string, members: readonly string[]): void {
    this.#add(
      this.#repaired,
      kind,
      key,
      (what) => `${what} was repaired; affected members: ${members.join(', ')}`,
    )
  }

  #add(sort: ProblemGroup, kind: ItemKind, key: string | undefined, message: (what: string) => string): void {
    if (++sort.count > maxNamed) return
    const name = key === undefined ? 'without a name' : JSON.stringify(key.slice(0, maxName))
    sort.named.push({
      kind: this.#notices,
      subject: `${this.#backend} ${name}`,
      message: message(`${nouns[kind]} ${name} from backend ${this.#backend}`),
    })
  }

  get all(): ListErrors {
    const [repaired, leftOut] = [this.#repaired, this.#leftOut]
    if (repaired.count + leftOut.count === 0) return noErrors
    return {
      repaired: repaired.count,
      leftOut: leftOut.count,
      problems: [
        ...leftOut.named,
        ...this.#more(leftOut, 'are left out'),
        ...repaired.named,
        ...this.#more(repaired, 'were repaired'),
      ],
    }
  }

  #more({ count, named }: ProblemGroup, what: string): CatalogNotice[] {
    const more = count - named.length
    if (more === 0) return []
    const message = `${more} more items from backend ${this.#backend} ${what}`
    return [{ kind: this.#notices, subject: this.#backend, message }]
  }
}

/** Maximum number of malformed items in an event. */
export const maxExamples = 5
