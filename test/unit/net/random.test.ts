/** Random bytes from batches: none comes twice, and all lengths are served. */
import t from 'tap'
import { randomBuffer } from '../../../runtime/net/index.ts'

t.test('random: no value comes twice, across the ends of batches', async (t) => {
  const seen = new Set<string>()
  for (let n = 0; n < 3_000; n++) {
    const length = 12 + (n % 21)
    const value = randomBuffer(length)
    if (value.length !== length) t.fail(`length ${length}`)
    // Bytes that were given out are overwritten: neither they nor the zeros in their place are given again.
    seen.add(value.subarray(0, 12).toString('hex'))
  }
  t.equal(seen.size, 3_000)
})

t.test('random: a value belongs to who asked for it', async (t) => {
  const values = Array.from({ length: 500 }, () => randomBuffer(32))
  const before = values.map((value) => value.toString('hex'))
  for (let n = 0; n < 500; n++) randomBuffer(16)
  t.same(
    values.map((value) => value.toString('hex')),
    before,
  )
})

t.test('random: more than a batch, and nothing', async (t) => {
  for (const length of [0, 1, 2_047, 2_048, 2_049, 10_000]) {
    const value = randomBuffer(length)
    t.equal(value.length, length)
    if (length > 1_000) t.ok(new Set(value).size > 200, 'all of it is random')
  }
})
