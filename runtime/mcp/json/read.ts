/**
 * Reads the members of an object or the elements of an array, in slices that yield to the event loop. JsonObject reads
 * small objects faster.
 *
 * The members of a large object are cached until the object's buffer is garbage-collected. Several JsonObjects for one
 * buffer therefore cost no more than a single JsonObject.
 */
import { openArray, openObject } from './bytes.ts'
import { JsonError, maxMembers, tooManyMembers } from './errors.ts'
import { JsonScanner } from './scanner.ts'
import { atOnce, largeBytes, sliceBytes, type TurnWork } from './turns.ts'

/** One member of an object, with its decoded name, the index where the name begins, and the range of the value. */
export interface JsonMember {
  readonly name: string
  readonly nameAt: number
  readonly from: number
  readonly to: number
  /** A large value that has already been returned. The value is kept because its own members are cached too. */
  raw?: Buffer
}

/**
 * Calls `visit` with each member or element of the object or array in `text`. Completes the work that `visit` returns
 * before continuing. Throws JsonError for invalid JSON, or if a member has more than `maxValues` values.
 */
function* visitChildren(
  text: Buffer,
  opening: number,
  visit: (child: JsonMember) => TurnWork<void> | undefined,
  maxValues = Infinity,
): TurnWork<void> {
  const scanner = new JsonScanner({ watched: 1, values: maxValues })
  let nameAt = 0
  let from = 0
  for (let offset = 0; offset < text.length; offset += sliceBytes) {
    if (offset > 0) yield
    scanner.feed(text.length <= sliceBytes ? text : text.subarray(offset, offset + sliceBytes), offset)
    for (let stop = scanner.advance(); stop !== 'chunk'; stop = scanner.advance()) {
      const at = offset + scanner.at
      if (stop === 'name') nameAt = at - scanner.nameBytes
      else if (stop === 'value') {
        if (scanner.depth === 0 && text[at] !== opening)
          throw new JsonError(`${opening === openObject ? 'object' : 'array'} expected`, at)
        from = at
        scanner.values = 0
      } else if (scanner.depth > 0) {
        const work = visit({ name: scanner.name, nameAt, from, to: at })
        if (work) yield* work
      }
    }
  }
  if (!scanner.isDone) throw new JsonError('unfinished value', text.length)
}

/** The members of large objects, or the error that occurred when they were read. */
const membersRead = new WeakMap<Uint8Array, readonly JsonMember[] | JsonError>()

/**
 * Returns the members of the object in `bytes`. Checks the whole text, but does not compare names (see JsonObject).
 * Throws JsonError for invalid JSON, for more than `maxMembers` members, or for more than `maxValues` values in one
 * member.
 */
export function scannedMembers(bytes: Buffer, maxValues?: number): readonly JsonMember[] {
  return atOnce(membersOf(bytes, maxValues))
}

/**
 * Reads the members of a large object before `scannedMembers` needs them. Does nothing for a small object. Throws
 * JsonError, and `scannedMembers` then throws the same error.
 */
export function* readMembers(bytes: Buffer, maxValues?: number): TurnWork<void> {
  if (bytes.length >= largeBytes) yield* membersOf(bytes, maxValues)
}

/** Stores the members of an object, so that `scannedMembers` does not read them. */
export function storeMembers(bytes: Buffer, members: readonly JsonMember[]): void {
  membersRead.set(bytes, members)
}

function* membersOf(bytes: Buffer, maxValues?: number): TurnWork<readonly JsonMember[]> {
  let read = membersRead.get(bytes)
  if (!read) {
    read = yield* scanMembers(bytes, maxValues)
    if (bytes.length >= largeBytes) membersRead.set(bytes, read)
  }
  if (read instanceof JsonError) throw read
  return read
}

function* scanMembers(bytes: Buffer, maxValues?: number): TurnWork<readonly JsonMember[] | JsonError> {
  const members: JsonMember[] = []
  const add = (member: JsonMember): undefined => {
    if (members.length === maxMembers) throw tooManyMembers(member.nameAt)
    members.push(member)
  }
  try {
    yield* visitChildren(bytes, openObject, add, maxValues)
    return members
  } catch (error) {
    if (error instanceof JsonError) return error
    throw error
  }
}

/**
 * Calls `visit` with the range of each element of the array in `text`. Completes the work that `visit` returns before
 * continuing.
 */
export function visitElementsInTurns(
  text: Buffer,
  visit: (from: number, to: number) => TurnWork<void> | undefined,
): TurnWork<void> {
  return visitChildren(text, openArray, ({ from, to }) => visit(from, to))
}

/**
 * Returns the elements of the array in `text`, as slices that share the text's memory. Throws JsonError for more than
 * `max` elements.
 */
export function scanElements(text: Buffer, max = Infinity): Buffer[] {
  const elements: Buffer[] = []
  const add = (from: number, to: number): undefined => {
    if (elements.length >= max) throw new JsonError('too many elements', from)
    elements.push(text.subarray(from, to))
  }
  atOnce(visitElementsInTurns(text, add))
  return elements
}
