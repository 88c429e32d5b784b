/** JSON errors and limits of all readers. */
import { ModuleError } from '../../../schemas/index.ts'

export class JsonError extends ModuleError {
  constructor(what: string, offset: number) {
    super(`${what} at byte ${offset}`)
  }
}

/** The same member twice in one object. */
export class DuplicateMember extends JsonError {
  constructor() {
    super('duplicate member', 0)
  }
}

/** An object with more than `maxMembers` members. */
export class TooManyMembers extends JsonError {
  constructor(offset: number) {
    super('too many members', offset)
  }
}

/** A text with more values than the reader accepts. */
export class TooManyValues extends JsonError {
  constructor(offset: number) {
    super('too many values', offset)
  }
}

/** Deeper nesting is rejected: no legitimate message comes close, and later readers may be recursive. */
export const maxDepth = 256

/** Maximum number of members of an object whose names are compared: comparing more blocks the event loop. */
export const maxMembers = 10_000

/** Maximum length of a number. */
export const maxNumberBytes: number = 64 * 1024

/** Maximum length of a name that is reported, with its quotes. */
export const maxNameBytes: number = 64 * 1024
