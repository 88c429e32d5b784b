import t from 'tap'
import { InFlight } from '../../../runtime/net/index.ts'

t.test(
  'in flight: entries can be added and removed in any order, and the newest is found first',
  async (t) => {
    const list = new InFlight<{ readonly id: string; readonly n: number }>()
    t.same(list.values(), [])
    const [a, b, c] = ['a', 'b', 'a'].map((id, n) => list.add({ id, n }))
    t.equal(list.size, 3)
    t.equal(list.find(({ id }) => id === 'a')?.n, 2, 'the newest')
    t.equal(
      list.find(({ id }) => id === 'x'),
      undefined,
    )
    t.ok(b && list.remove(b))
    t.same(
      list.values().map(({ n }) => n),
      [0, 2],
    )
    t.notOk(b && list.remove(b), 'only once')
    t.ok(c && list.remove(c))
    t.ok(a && list.remove(a))
    t.equal(list.size, 0)
    t.same(list.values(), [])
    list.add({ id: 'd', n: 3 })
    t.equal(list.find(() => true)?.n, 3, 'it can be used again')
  },
)

t.test('in flight: a removed entry keeps no reference to other entries', async (t) => {
  const list = new InFlight<number>()
  const entries = [1, 2, 3].map((n) => list.add(n))
  for (const entry of entries) {
    list.remove(entry)
    t.match(entry, { previous: undefined, next: undefined })
  }
})
