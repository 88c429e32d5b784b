/** Random bytes from batches: values never repeat, and any length is possible. */
import t from 'tap'
import { randomBuffer } from '../../../runtime/net/index.ts'

t.test('random: values never repeat across batches', async (t) => {
  const seen = new Set<string>()
  for (let n = 0; n < 3_000; n++) {
    const length = 12 + (n % 21)
    const value = randomBuffer(length)
    if (value.length !== length) t.fail(`length ${length}`)
    // Returned bytes are overwritten in the batch; neither they nor the zeros are returned again.
    seen.add(value.subarray(0, 12).toString('hex'))
  }
  t.equal(seen.size, 3_000)
})

t.test('random: later calls do not change a returned value', async (t) => {
  const values = Array.from({ length: 500 }, () => randomBuffer(32))
  const before = values.map((value) => value.toString('hex'))
  for (let n = 0; n < 500; n++) randomBuffer(16)
  t.same(
    values.map((value) => value.toString('hex')),
    before,
  )
})

t.test('random: lengths beyond a batch, and zero', async (t) => {
  for (const length of [0, 1, 2_047, 2_048, 2_049, 10_000]) {
    const value = randomBuffer(length)
    t.equal(value.length, length)
    if (length > 1_000) t.ok(new Set(value).size > 200, 'all bytes are random')
  }
})
