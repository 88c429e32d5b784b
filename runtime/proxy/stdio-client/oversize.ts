/**
 * The start and the end of an input line that is too long. Clients write the id near the start or the end of a message.
 *
 * An error response needs the id of its request, because the sender would otherwise wait. The id is searched for in the
 * buffered parts. An id is accepted only where the surrounding text proves that it is a field of the message itself.
 */

/** Number of buffered bytes at each end. */
export const endBytes = 512

export class Oversize {
  readonly head: Buffer
  readonly tail: Buffer

  constructor(head: Buffer, tail: Buffer) {
    this.head = head
    this.tail = tail
  }

  /** Returns the message's raw JSON id; undefined when neither end of the message contains the id. */
  get id(): string | undefined {
    return (
      idAtStart.exec(this.head.toString('latin1'))?.[1] ?? idAtEnd.exec(this.tail.toString('latin1'))?.[1]
    )
  }
}

const id = String.raw`"id"\s{0,8}:\s{0,8}(-?\d{1,20}|"[\w.:-]{1,128}")`
const version = String.raw`"jsonrpc"\s{0,8}:\s{0,8}"2\.0"`
const method = String.raw`"method"\s{0,8}:\s{0,8}"[\w/.$-]{1,64}"`
const idAtStart = new RegExp(
  String.raw`^\s{0,8}\{(?:\s{0,8}(?:${version}|${method})\s{0,8},){0,2}\s{0,8}${id}\s{0,8},`,
)
const idAtEnd = new RegExp(
  String.raw`[,{]\s{0,8}${id}\s{0,8}(?:,\s{0,8}(?:${version}|${method})\s{0,8}){0,2}\}\s{0,8}$`,
)
