/**
 * How often each policy decided. Counts belong to the text of a policy: ids are places in a list, which a changed
 * configuration may fill otherwise.
 */
import type { DescribedPolicies } from '../../policy/index.ts'

/** Of a set that is in force, or was the last before it: requests in flight end under the policies that they began with. */
interface KnownSet {
  readonly set: DescribedPolicies
  readonly textOf: ReadonlyMap<string, string>
}

/** What a decision says of policies. */
export interface Decided {
  readonly reason: readonly string[]
  readonly errors: readonly string[]
  readonly setDigest: string
  readonly shadow: { readonly reason: readonly string[] } | undefined
}

export class PolicyCounts {
  readonly #current: () => DescribedPolicies | undefined
  #known: readonly KnownSet[] = []
  #decided = new Map<string, number>()
  #failed = new Map<string, number>()

  /** `current` gives the same object as long as the policies are the same. */
  constructor(current: () => DescribedPolicies | undefined) {
    this.#current = current
  }

  count({ reason, errors, setDigest, shadow }: Decided): void {
    this.#learn()
    const known = this.#known.find(({ set }) => set.digest === setDigest)
    if (!known) return
    for (const id of reason) add(this.#decided, known.textOf.get(id))
    for (const id of errors) add(this.#failed, known.textOf.get(id))
    // Ids of enforced policies stand in the reason too, where the shadow policies are asked beside them.
    for (const id of shadow?.reason ?? []) if (!reason.includes(id)) add(this.#decided, known.textOf.get(id))
  }

  decided(text: string): number {
    return this.#decided.get(text) ?? 0
  }

  failed(text: string): number {
    return this.#failed.get(text) ?? 0
  }

  #learn(): void {
    const set = this.#current()
    if (!set || set === this.#known[0]?.set) return
    const textOf = new Map(set.items.map(({ id, text }) => [id, text]))
    this.#known = [{ set, textOf }, ...this.#known.slice(0, 1)]
    const texts = new Set(this.#known.flatMap((one) => [...one.textOf.values()]))
    this.#decided = withoutOthers(this.#decided, texts)
    this.#failed = withoutOthers(this.#failed, texts)
  }
}

function add(counts: Map<string, number>, text: string | undefined): void {
  if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1)
}

function withoutOthers(counts: ReadonlyMap<string, number>, texts: ReadonlySet<string>): Map<string, number> {
  return new Map([...counts].filter(([text]) => texts.has(text)))
}
