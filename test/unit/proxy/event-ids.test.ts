/** The event ids forwarded in a session that was reopened. */
import t from 'tap'
import { EventIds } from '../../../runtime/proxy/model/event-ids.ts'

t.test('event ids of any length that fits into a header are recognized', async (t) => {
  for (const length of [1, 128, 129, 513, 4_000]) {
    const id = 'i'.repeat(length)
    const ids = new EventIds()
    const scan = ids.scanner()
    for (const byte of Buffer.from(`data: ${'x'.repeat(9_000)}\nid: ${id}\ndata: x\n\n`))
      scan(Buffer.from([byte]))
    t.ok(ids.has(id), String(length))
    t.notOk(ids.has(`${id}i`))
  }
})

t.test('longer ids are not recognized, and the oldest id is dropped first', async (t) => {
  const ids = new EventIds()
  ids.scanner()(Buffer.from(`id: ${'i'.repeat(9_000)}\n`))
  t.notOk(ids.has('i'.repeat(9_000)))
  for (let n = 0; n <= 512; n++) ids.add(`e${n}`)
  t.notOk(ids.has('e0'))
  t.ok(ids.has('e1'))
})
