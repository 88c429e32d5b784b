/** Work that yields between slices, so large JSON is read over many turns of the event loop. */
import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import { nextShare, shareIsOver } from './turn-shares.ts'

/** Work that yields at points where other work can run. */
export type TurnWork<T> = Generator<undefined, T, undefined>

/** Text below this size is read in one turn. */
export const largeBytes: number = 256 * 1024
/**
 * Number of bytes to process between yields. This many bytes contain at most 40,000 values and take about 2 ms to read.
 */
export const sliceBytes: number = 128 * 1024
const utf8SliceBytes = 1024 * 1024

/** Runs work to completion in this turn. */
export function atOnce<T>(work: TurnWork<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/** Runs work in slices over later turns. */
export async function inTurns<T>(work: TurnWork<T>): Promise<T> {
  for (;;) {
    await nextShare()
    do {
      const step = work.next()
      if (step.done) return step.value
    } while (!shareIsOver())
  }
}

/** Runs work synchronously for small text, and in slices over later turns of the event loop for large text. */
export function workOn<T>(bytes: Buffer, work: TurnWork<T>): T | Promise<T> {
  return bytes.length < largeBytes ? atOnce(work) : inTurns(work)
}

/** Returns false if the bytes are not UTF-8. */
export function* checkUtf8(bytes: Buffer): TurnWork<boolean> {
  for (let from = 0; from < bytes.length; ) {
    let to = Math.min(from + utf8SliceBytes, bytes.length)
    // Do not split a character. The second to fourth bytes of a character begin with the bits 10.
    for (let k = 0; k < 3 && to < bytes.length && ((bytes[to] ?? 0) & 0xc0) === 0x80; k++) to--
    if (!isUtf8(bytes.subarray(from, to))) return false
    from = to
    yield
  }
  return true
}

/** Returns the given bytes if they are valid UTF-8. Otherwise, replaces invalid sequences with U+FFFD. */
export function* madeUtf8(bytes: Buffer): TurnWork<Buffer> {
  if (yield* checkUtf8(bytes)) return bytes
  const decoder = new StringDecoder('utf8')
  const pieces: Buffer[] = []
  for (let from = 0; from < bytes.length; from += utf8SliceBytes) {
    pieces.push(Buffer.from(decoder.write(bytes.subarray(from, from + utf8SliceBytes))))
    yield
  }
  pieces.push(Buffer.from(decoder.end()))
  return yield* joined(pieces)
}

const copySlice = 4 * 1024 * 1024

/** Concatenates the pieces. */
export function* joined(pieces: readonly Buffer[], size = sizeOf(pieces)): TurnWork<Buffer> {
  const whole = Buffer.allocUnsafe(size)
  let at = 0
  let copied = 0
  for (const piece of pieces) {
    for (let from = 0; from < piece.length; from += copySlice) {
      const count = piece.copy(whole, at, from, from + copySlice)
      at += count
      copied += count
      if (copied < copySlice) continue
      copied = 0
      yield
    }
  }
  return whole
}

function sizeOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0)
}

/** Like `indexOf`, but works in slices. */
export function* indexIn(bytes: Buffer, what: string, at: number): TurnWork<number> {
  for (let from = at; from < bytes.length; from += sliceBytes) {
    const found = bytes.subarray(from, from + sliceBytes + what.length - 1).indexOf(what)
    if (found >= 0) return from + found
    yield
  }
  return -1
}
