/** The locks of one backend together. */
import t from 'tap'
import { closedBy, settingsFor } from '../../../../runtime/vmcp/catalog/pinning/apply.ts'
import { compileLocks } from '../../../../runtime/vmcp/catalog/pinning/compile.ts'

const observe = { onChanged: 'observe', onNew: 'observe', onRemoved: 'observe', noLock: 'allow' } as const

t.test(
  'of locks that disagree the strictest counts, in whatever order, and closes the backend',
  async (t) => {
    const locks = [
      { backend: 'b', scheme: 'gatehouse.pin.v1', onChanged: 'observe', onNew: 'block' },
      { backend: 'b', scheme: 'gatehouse.pin.v1', onChanged: 'block', onNew: 'warn' },
      { backend: 'b', scheme: 'gatehouse.pin.v1', onChanged: 'freeze' },
    ] as const
    for (const given of [locks, locks.toReversed()]) {
      const lock = await compileLocks('b', given)
      t.match(lock, { onChanged: 'block', onNew: 'block', onRemoved: undefined })
      t.match(lock.failure, /different values of onChanged/)
      t.equal(closedBy(settingsFor(observe, lock), lock), 'lock_invalid')
    }
  },
)
