/** JSON errors, and the limits that apply to all readers. */
import { ModuleError } from '../../../schemas/index.ts'

export class JsonError extends ModuleError {
  constructor(what: string, offset: number) {
    super(`${what} at byte ${offset}`)
  }
}

/** Thrown if a member occurs twice in one object. */
export class DuplicateMember extends JsonError {
  constructor() {
    super('duplicate member', 0)
  }
}

/** Thrown for valid JSON that exceeds one of the readers' limits. */
export class JsonBoundError extends JsonError {
  /** Describes the limit, as a clause for error messages. */
  readonly bound: string

  constructor(bound: string, offset: number) {
    super(bound, offset)
    this.bound = bound
  }
}

/**
 * Maximum nesting depth of a value, counted from the members of the outermost object. The depth is limited because
 * later readers may be recursive.
 */
export const maxDepth = 256

/**
 * Maximum number of members in an object whose member names are compared. Comparing more names would block the event
 * loop.
 */
export const maxMembers = 10_000

/** Maximum length of a number in bytes. */
export const maxNumberBytes: number = 64 * 1024

/** Maximum length of a member name, and of a name, URI or cursor in params, including the quotes. */
export const maxNameBytes: number = 64 * 1024

export function tooManyMembers(offset: number): JsonBoundError {
  return new JsonBoundError(`an object has more than ${maxMembers} members`, offset)
}
