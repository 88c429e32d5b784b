/** Names, canonical JSON and hashes that both halves must derive in the same way. */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  canonicalJson,
  envName,
  hashOf,
  isDnsLabel,
  isDnsSubdomain,
  kindOf,
  kinds,
  shortName,
} from '../../../schemas/index.ts'

await t.test(
  'envName: converts to upper case and replaces all other characters with underscores',
  async (t) => {
    t.equal(envName('github'), 'GITHUB')
    t.equal(envName('my-server.v2'), 'MY_SERVER_V2')
    t.equal(envName('X-API-Key'), 'X_API_KEY')
    t.equal(envName('a_b'), 'A_B')
    t.equal(envName('é'), '_')
  },
)

await t.test('isDnsLabel, isDnsSubdomain: RFC 1123', async (t) => {
  for (const name of ['a', 'a-b', '0a', 'x'.repeat(63)]) t.ok(isDnsLabel(name) && isDnsSubdomain(name), name)
  for (const name of ['', '-a', 'a-', 'A', 'a_b', 'x y', 'a\n'])
    t.notOk(isDnsLabel(name) || isDnsSubdomain(name), name)
  t.notOk(isDnsLabel('a.b'))
  t.ok(isDnsSubdomain('a.b-c.d'))
  t.notOk(isDnsSubdomain('a..b'))
  t.notOk(isDnsLabel('x'.repeat(64)))
  t.notOk(isDnsSubdomain('x'.repeat(254)))
})

await t.test('shortName: a short name stays, and a long one is cut and extended with a hash', async (t) => {
  t.equal(shortName('ca-bundle-github', 63), 'ca-bundle-github')
  t.equal(shortName('x'.repeat(63), 63), 'x'.repeat(63))
  const [one, two] = [shortName(`${'x'.repeat(63)}a`, 63), shortName(`${'x'.repeat(63)}b`, 63)]
  t.equal(one.length, 63)
  t.not(one, two)
  t.equal(one, shortName(`${'x'.repeat(63)}a`, 63))
  t.ok(isDnsLabel(one))
  t.ok(isDnsLabel(shortName(`${'a'.repeat(53)}-${'b'.repeat(20)}`, 63)), 'no hyphen doubles at the cut')
  t.throws(() => shortName('x'.repeat(20), 9), RangeError)
})

await t.test('canonicalJson: the text does not depend on the order of keys', async (t) => {
  t.equal(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true }), '{"a":true,"b":[1,{"c":"x","d":null}]}')
  t.equal(canonicalJson({ a: undefined, b: 1 }), '{"b":1}')
  t.equal(canonicalJson([undefined, 1]), '[null,1]')
  t.equal(
    canonicalJson({ '\u20ac': 1, '\r': 2, 1: 3, '\ufb33': 4, '\ud83d\ude02': 5 }),
    '{"\\r":2,"1":3,"\u20ac":1,"\ud83d\ude02":5,"\ufb33":4}',
  )
  t.equal(canonicalJson(-0), '0')
  t.equal(canonicalJson('a"b'), '"a\\"b"')
})

await t.test('canonicalJson: rejects values that JSON cannot represent', async (t) => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = { cycle }
  for (const value of [
    undefined,
    () => 1,
    1n,
    Number.NaN,
    Number.NEGATIVE_INFINITY,
    { a: Symbol('x') },
    cycle,
  ]) {
    t.throws(() => canonicalJson(value), TypeError)
  }
  const shared = { a: 1 }
  t.equal(canonicalJson([shared, shared]), '[{"a":1},{"a":1}]', 'used twice is no cycle')
})

await t.test('hashOf: SHA-256 of the canonical JSON in hex', async (t) => {
  t.equal(hashOf({ b: 1, a: 2 }), hashOf({ a: 2, b: 1 }))
  t.equal(hashOf({ a: 2 }), createHash('sha256').update('{"a":2}').digest('hex'))
  t.not(hashOf({ a: '1' }), hashOf({ a: 1 }))
})

await t.test('kinds: one for each file of schemas/kinds, found by any of their names', async (t) => {
  const files = readdirSync(join(import.meta.dirname, '../../../schemas/kinds'))
  t.ok(files.length > 10)
  t.same(
    kinds.map(({ singular }) => `${singular}.json`),
    files.toSorted(),
  )
  for (const name of ['VirtualMCPServer', 'virtualmcpservers', 'virtualmcpserver', 'vmcp', 'VMCP']) {
    t.equal(kindOf(name)?.kind, 'VirtualMCPServer', name)
  }
  t.equal(kindOf('deployment'), undefined)
})
