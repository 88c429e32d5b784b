/** Replaces ranges of bytes and keeps everything else. */
import { joined, type TurnWork } from '../../../../mcp/index.ts'
import type { Replacement } from './scan.ts'

const slicePieces = 4_000

/** The edits must be ascending and without overlaps. */
export function* spliced(bytes: Buffer, edits: readonly Replacement[]): TurnWork<Buffer> {
  if (edits.length === 0) return bytes
  const pieces: Buffer[] = []
  let at = 0
  for (const { from, to, text } of edits) {
    pieces.push(bytes.subarray(at, from), Buffer.from(text))
    at = to
    if (pieces.length % slicePieces === 0) yield
  }
  pieces.push(bytes.subarray(at))
  return yield* joined(pieces)
}
