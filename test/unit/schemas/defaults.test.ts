/** Defaults are filled into a copy that shares no object with the document and is otherwise equal. */
import t from 'tap'
import { withDefaults } from '../../../schemas/index.ts'
import { auth, entry, server, virtual } from '../../hooks/resources.ts'

const documents = [virtual(), server('one'), entry('two'), auth.exchange]

/** Returns all objects and lists in a value. */
function objectsIn(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return []
  return [value, ...Object.values(value).flatMap(objectsIn)]
}

t.test('defaults: the copy shares no object with the document or with another copy', async (t) => {
  for (const document of documents) {
    const before = JSON.stringify(document)
    const [one, two] = [withDefaults(document), withDefaults(document)]
    const others = new Set([...objectsIn(document), ...objectsIn(two)])
    t.same(
      objectsIn(one).filter((object) => others.has(object)),
      [],
      document.kind,
    )
    t.strictSame(one, two)
    t.equal(JSON.stringify(document), before)
  }
})

t.test('defaults: applying defaults twice changes nothing', async (t) => {
  for (const document of documents) {
    const one = withDefaults(document)
    t.strictSame(withDefaults(one), one)
    t.equal(JSON.stringify(withDefaults(one)), JSON.stringify(one))
  }
})

t.test('defaults: a member called __proto__ is copied at any depth', async (t) => {
  const own = '{"__proto__":{"a":{"__proto__":[1]}},"b":null}'
  const text = JSON.stringify(virtual()).replace('"spec":{', `"spec":{"podTemplateSpec":${own},`)
  const { spec } = withDefaults(JSON.parse(text))
  t.equal(JSON.stringify(Object.getOwnPropertyDescriptor(spec, 'podTemplateSpec')?.value), own)
})
