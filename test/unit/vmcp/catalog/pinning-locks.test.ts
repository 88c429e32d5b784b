/** Several locks for the same backend. */
import t from 'tap'
import { ActiveLocks } from '../../../../runtime/vmcp/catalog/pinning/active-locks.ts'
import { digestsOf } from '../../../../runtime/vmcp/catalog/pinning/digest.ts'
import type { Listing } from '../../../../runtime/vmcp/catalog/listing.ts'
import { closingReason, settingsFor } from '../../../../runtime/vmcp/catalog/pinning/apply.ts'
import { compileLocks } from '../../../../runtime/vmcp/catalog/pinning/compile.ts'
import type { PinReport } from '../../../../runtime/vmcp/catalog/pinning/report.ts'
import { PinReporter } from '../../../../runtime/vmcp/catalog/pinning/pin-reporter.ts'
import type { EventRow } from '../../../../runtime/observe/events/row.ts'
import { eventTable } from '../../../../runtime/observe/events/table.ts'
import { makeEvents } from '../../../../runtime/observe/index.ts'

const observe = { onChanged: 'observe', onNew: 'observe', onRemoved: 'observe', noLock: 'allow' } as const

t.test('conflicting locks: the strictest applies in any order, and the backend is closed', async (t) => {
  const locks = [
    { backend: 'b', scheme: 'gatehouse.pin.v1', onChanged: 'observe', onNew: 'block' },
    { backend: 'b', scheme: 'gatehouse.pin.v1', onChanged: 'block', onNew: 'warn' },
    { backend: 'b', scheme: 'gatehouse.pin.v1', onChanged: 'freeze' },
  ] as const
  for (const given of [locks, locks.toReversed()]) {
    const lock = await compileLocks('b', given)
    t.match(lock, { onChanged: 'block', onNew: 'block', onRemoved: undefined })
    t.match(lock.failure, /different values for onChanged/)
    t.equal(closingReason(settingsFor(observe, lock), lock), 'lock_invalid')
  }
})

const emptyListing: Listing = {
  backend: 'b',
  serial: 1,
  server: { instructions: undefined } as Listing['server'],
  tools: [],
  resources: [],
  templates: [],
  prompts: [],
  violations: { problems: [], repaired: 0, leftOut: 0 },
}

function reportOf(backend: string, more: Partial<PinReport>): PinReport {
  const counts = { pinned: 1, new: 0, changed: 0, removed: 0 }
  const lock = { lock: 'ok', locks: [], failure: undefined, closed: false } as const
  return { backend, ...lock, counts, observed: true, drift: [], quiet: false, ...more }
}

t.test('the log reports how a difference ended: in sync again, or no lock to compare with', (t) => {
  const events = makeEvents(Date.now)
  const seen: unknown[] = []
  events.listen(({ type, fields }) => {
    const { level, message }: EventRow<never> = eventTable[type]
    const own = fields as never
    seen.push([
      typeof level === 'function' ? level(own) : level,
      typeof message === 'function' ? message(own) : message,
    ])
  })
  const told = new PinReporter(events)
  const changed = { pinned: 0, new: 0, changed: 1, removed: 0 }
  const differs = reportOf('b', { counts: changed })
  told.update([differs])
  told.update([reportOf('b', {})])
  told.update([differs])
  told.update([reportOf('b', { lock: 'invalid', failure: 'twice' })])
  told.update([reportOf('b', { lock: 'missing' })])
  told.update([reportOf('b', { lock: 'invalid', failure: 'twice' })])
  told.update([reportOf('b', {})])
  told.update([reportOf('b', { counts: changed, quiet: true })])
  told.update([])
  told.update([reportOf('b', { lock: 'missing', closed: true })])
  told.update([])
  t.same(seen, [
    ['warn', 'a backend differs from its tool lock'],
    ['info', 'a backend matches its tool lock'],
    ['warn', 'a backend differs from its tool lock'],
    ['error', 'the tool lock for a backend cannot be used'],
    ['info', 'a backend is no longer compared with a tool lock'],
    ['info', 'a backend no longer has a tool lock'],
    ['error', 'the tool lock for a backend cannot be used'],
    ['info', 'the tool lock for a backend is in force'],
    ['debug', 'a backend differs from its tool lock'],
    ['info', 'a backend is no longer compared with a tool lock'],
    ['warn', 'a backend offers nothing: it has no tool lock'],
    ['info', 'a backend no longer has a tool lock'],
  ])
  t.notOk(told.isOpen)
  t.end()
})

t.test('hidden characters in names are escaped', (t) => {
  const events = makeEvents(Date.now)
  const seen: unknown[] = []
  events.listen(({ fields }) => seen.push({ ...fields }))
  const drift = { backend: 'b', state: 'changed', parts: ['text'], digest: 'x' } as const
  const names = [
    { kind: 'tool', name: 'read\u202e\u{e0041}\n' },
    { kind: 'prompt', name: 'greet' },
  ] as const
  const counts = { pinned: 0, new: 0, changed: 2, removed: 0 }
  new PinReporter(events).update([
    reportOf('b', { counts, drift: names.map((name) => ({ ...drift, ...name })) }),
  ])
  t.match(seen, [
    {
      examples: ['tool read\\u{202e}\\u{e0041}\\u{a} changed (text)', 'prompt greet changed (text)'],
    },
  ])
  t.end()
})

t.test('a difference is quiet only if its type is set to observe', async (t) => {
  const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: 'object' } })
  const text = (value: object) => JSON.stringify(value)
  const locked = [tool('same', 'x'), tool('changed', 'x'), tool('removed', 'x')]
  const differing = {
    changed: [tool('same', 'x'), tool('changed', 'y'), tool('removed', 'x')],
    new: [...locked, tool('new', 'x')],
    removed: [tool('same', 'x'), tool('changed', 'x')],
  }
  const lock = {
    backend: 'b',
    scheme: 'gatehouse.pin.v1' as const,
    tools: locked.map((one) => ({ name: one.name, definition: text(one) })),
  }
  const options = { changed: 'onChanged', new: 'onNew', removed: 'onRemoved' } as const
  for (const [sort, tools] of Object.entries(differing)) {
    for (const [other, option] of Object.entries(options)) {
      const book = new ActiveLocks({ onReady: () => {} })
      book.replace({ pinning: { ...observe, [option]: 'warn' }, toolLocks: [lock] })
      await book.ready('b', emptyListing)
      const items = await Promise.all(
        tools.map(async (one) => {
          const json = Buffer.from(text(one))
          return { key: one.name, json, mirrored: [], pin: await digestsOf('tool', json) }
        }),
      )
      const listing = { ...emptyListing, tools: items }
      const report = book.report({ backend: 'b', listings: [listing], perCaller: false })
      t.equal(report?.quiet, sort !== other, `${sort}, ${option}: warn`)
    }
  }
})
