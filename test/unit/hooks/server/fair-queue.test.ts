/** Fair queue of admission reviews: an address that invents users still has one share. */
import t from 'tap'
import { FairQueue } from '../../../../hooks/server/fair-queue.ts'

t.test('fair queue: users of one address take turns', async (t) => {
  const queue = filled(['api', 'greedy'], ['api', 'greedy'], ['api', 'greedy'], ['api', 'other'])
  t.same(drained(queue), ['greedy', 'other', 'greedy', 'greedy'])
})

t.test(
  'fair queue: an address with any number of invented users leaves every second turn to another address',
  async (t) => {
    const invented = Array.from({ length: 20 }, (_, i): [string, string] => ['pod', `user-${i}`])
    const queue = filled(...invented, ['api', 'ana'], ['api', 'ben'])
    t.same(drained(queue).slice(0, 4), ['user-0', 'ana', 'user-1', 'ben'])
  },
)

t.test('fair queue: counts by user and by address, and removed reviews have no turn', async (t) => {
  const queue = filled(['api', 'ana'], ['api', 'ana'], ['api', 'ben'])
  t.same(queue.count({ address: 'api', user: 'ana' }), { user: 2, address: 3 })
  t.same(queue.count({ address: 'pod', user: 'ana' }), { user: 0, address: 0 })
  t.equal(queue.remove({ address: 'api', user: 'ben' }, 'ben'), true)
  t.equal(queue.remove({ address: 'api', user: 'ben' }, 'ben'), false)
  t.same(drained(queue), ['ana', 'ana'])
  t.same(queue.count({ address: 'api', user: 'ana' }), { user: 0, address: 0 })
})

function filled(...requesters: readonly [string, string][]): FairQueue<string> {
  const queue = new FairQueue<string>()
  for (const [address, user] of requesters) queue.push({ address, user }, user)
  return queue
}

function drained(queue: FairQueue<string>): string[] {
  const tasks: string[] = []
  for (let task = queue.shift(); task !== undefined; task = queue.shift()) tasks.push(task)
  return tasks
}
