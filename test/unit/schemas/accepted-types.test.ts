/** Backend schemas that could make the search for accepted types slow. The tests count reads, because clocks vary. */
import t from 'tap'
import { acceptedTypes } from '../../../schemas/index.ts'

/** Returns a list, and a function that counts how often its items were read. */
function countedList(length: number, item: unknown): { list: unknown[]; reads: () => number } {
  let reads = 0
  const list = new Proxy(
    Array.from({ length }, () => item),
    {
      get(items, name, receiver): unknown {
        if (typeof name === 'string' && /^\d+$/.test(name)) reads++
        return Reflect.get(items, name, receiver)
      },
    },
  )
  return { list, reads: () => reads }
}

t.test('types: a long list in a schema that refers to itself is not read repeatedly', async (t) => {
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const { list, reads } = countedList(10_000, { $ref: '#' })
    t.same(acceptedTypes({ [keyword]: list }), [], keyword)
    t.ok(reads() <= 100_000, `${keyword}: ${reads()}`)
  }
})

t.test('types: a long enum behind many references is not read for each reference', async (t) => {
  const { list, reads } = countedList(10_000, 'one')
  const anyOf = Array.from({ length: 900 }, () => ({ $ref: '#/$defs/long' }))
  t.same(acceptedTypes({ anyOf, $defs: { long: { enum: list } } }), [])
  t.ok(reads() <= 100_000, String(reads()))
  t.same(acceptedTypes({ $ref: '#/$defs/long', $defs: { long: { enum: list } } }), ['string'])
})

t.test('types: a long reference is not followed repeatedly', async (t) => {
  let reads = 0
  const target: Record<string, unknown> = {}
  const self = new Proxy(target, {
    getOwnPropertyDescriptor(object, name) {
      if (name === 'self') reads++
      return Reflect.getOwnPropertyDescriptor(object, name)
    },
  })
  self['self'] = self
  self['anyOf'] = Array.from({ length: 900 }, () => ({ $ref: `#${'/self'.repeat(1_000)}` }))
  reads = 0
  t.same(acceptedTypes(self), [])
  t.ok(reads <= 100_000, String(reads))
})
