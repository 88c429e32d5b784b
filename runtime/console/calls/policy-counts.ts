/**
 * Counts decisions per policy. Counts are keyed by policy text, because a policy's id is its position in the list,
 * which changes with the configuration.
 */
import type { DescribedPolicies } from '../../policy/index.ts'

/** The current or the previous set of policies. Requests in flight finish with the policies that they started with. */
interface KnownSet {
  readonly set: DescribedPolicies
  readonly textOf: ReadonlyMap<string, string>
}

/** The policies and errors that determined a decision. */
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

  /** `current` must return the same object while the policies are unchanged. */
  constructor(current: () => DescribedPolicies | undefined) {
    this.#current = current
  }

  count({ reason, errors, setDigest, shadow }: Decided): void {
    this.#learn()
    const known = this.#known.find(({ set }) => set.digest === setDigest)
    if (!known) return
    for (const id of reason) add(this.#decided, known.textOf.get(id))
    for (const id of errors) add(this.#failed, known.textOf.get(id))
    // When shadow policies are evaluated together with enforced policies, `reason` also contains ids of enforced
    // policies.
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
