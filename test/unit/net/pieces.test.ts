import fc from 'fast-check'
import t from 'tap'
import { Pieces } from '../../../runtime/net/index.ts'

/** Returns the memory that the pieces retain. */
function retained(pieces: readonly Buffer[]): number {
  return [...new Set(pieces.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0)
}

t.test('pieces: returns the bytes in order', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(100), fc.nat(20_000)), { maxLength: 30 }),
      fc.nat(50),
      (lengths, offset) => {
        const pieces = new Pieces()
        const chunks = lengths.map((length, i) => Buffer.alloc(length + offset, i))
        for (const chunk of chunks) pieces.add(chunk, offset)
        const expected = Buffer.concat(chunks.map((chunk) => chunk.subarray(offset)))
        return pieces.size === expected.length && pieces.whole().equals(expected)
      },
    ),
  )
})

t.test('pieces: many small chunks are merged into few objects', async (t) => {
  const read = Buffer.alloc(65_536, 'x')
  const own = Buffer.from(new ArrayBuffer(1))
  for (const chunkAt of [(i: number) => read.subarray(i % 65_536, (i % 65_536) + 1), () => own]) {
    const pieces = new Pieces()
    for (let i = 0; i < 1_000_000; i++) pieces.add(chunkAt(i))
    t.equal(pieces.size, 1_000_000)
    t.ok(pieces.take().length < 30)
    t.ok(retained(pieces.take()) < 1_300_000)
  }
})

t.test('pieces: a part of a large buffer does not retain the whole buffer', async (t) => {
  for (const length of [100, 4_096, 16_384, 30_000]) {
    const pieces = new Pieces()
    for (let i = 0; i < 100; i++) pieces.add(Buffer.allocUnsafeSlow(65_536), 7, 7 + length)
    t.ok(retained(pieces.take()) < 2 * (100 * length + 65_536), `pieces of ${length} bytes`)
  }
})
