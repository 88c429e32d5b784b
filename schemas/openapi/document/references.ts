/**
 * Resolves references within a document. Never reads other documents. Source: RFC 6901; OpenAPI, "Reference Object".
 */
import { pointedSchema } from '../../json/accepted-types.ts'
import { type Fields, isFields } from '../../validation/fields.ts'
import { shapeOf } from '../../validation/violations.ts'
import { OperationSkipped } from '../failures.ts'

/** Maximum number of references in a chain, in which each reference points to the next one. */
const maxHops = 20
const maxReferenceLength = 1_000
/** Maximum number of members of one object or list that a conversion reads. */
const maxMembers = 3_000

export class References {
  readonly #root: Fields
  readonly #found = new Map<string, unknown>()
  readonly #oversized = new WeakSet<object>()

  constructor(root: Fields) {
    this.#root = root
  }

  /** Returns the value that a local reference points to. Throws OperationSkipped if the value does not exist. */
  target(reference: string): unknown {
    const known = this.#found.get(reference)
    if (known !== undefined) return known
    const isLocal = reference.startsWith('#/') && reference.length <= maxReferenceLength
    const target = isLocal ? pointedSchema(this.#root, reference) : undefined
    if (target === undefined)
      throw new OperationSkipped('unresolved_reference', `the $ref ${shown(reference)} points to nothing`)
    this.#found.set(reference, target)
    return target
  }

  /**
   * Returns the number of members of an object or list. Throws OperationSkipped if there are more than 3,000. Stores
   * each oversized container, because many operations can refer to it and counting its members is slow.
   */
  limitMembers(container: object): number {
    const size = this.#oversized.has(container)
      ? Infinity
      : Array.isArray(container)
        ? container.length
        : Object.keys(container).length
    if (size <= maxMembers) return size
    this.#oversized.add(container)
    throw new OperationSkipped('too_many_members', `an object or list has more than ${maxMembers} members`)
  }

  /**
   * Follows references and returns the object. Throws OperationSkipped for any other value. `what` is the name that
   * messages use for the value.
   */
  object(value: unknown, what: string): Fields {
    let at = value
    for (let hop = 0; hop <= maxHops; hop++) {
      if (!isFields(at))
        throw new OperationSkipped('structure', `${what}: expected an object, got ${shapeOf(at)}`)
      const { $ref: reference } = at
      if (typeof reference !== 'string') {
        this.limitMembers(at)
        return at
      }
      at = this.target(reference)
    }
    throw new OperationSkipped(
      'unresolved_reference',
      `${what}: the $ref leads to itself, or through more than ${maxHops} references`,
    )
  }
}

function shown(reference: string): string {
  return JSON.stringify(reference.length > 120 ? `${reference.slice(0, 119)}…` : reference)
}
