/**
 * The cache of verified tokens: an entry ends after a minute, with its token, or with a key change; the size is
 * bounded.
 */
import t from 'tap'
import { maxAgeMs, VerifiedTokens } from '../../../runtime/incoming/verified-tokens.ts'
import { makeCaller } from '../../../runtime/net/index.ts'

const caller = makeCaller({ issuer: 'i', subject: 's', claims: {} })

await t.test(
  'VerifiedTokens: an entry ends after a minute or with the token, whichever comes first',
  async (t) => {
    let now = 1_000_000
    const tokens = new VerifiedTokens(() => now)
    tokens.set('long', caller, 1, (now + 3_600_000) / 1000, 100)
    tokens.set('short', caller, 1, (now + 10_000) / 1000, 100)
    tokens.set('none', caller, 1, undefined, 100)
    tokens.set('past', caller, 1, (now - 1_000) / 1000, 100)
    t.equal(tokens.get('past', 1), undefined, 'accepted by skew, but never remembered')
    now += 9_999
    t.equal(tokens.get('short', 1), caller)
    now += 1
    t.equal(tokens.get('short', 1), undefined)
    now += maxAgeMs - 10_001
    t.equal(tokens.get('long', 1), caller)
    t.equal(tokens.get('none', 1), caller)
    now += 1
    t.equal(tokens.get('long', 1), undefined)
    t.equal(tokens.get('none', 1), undefined)
    t.equal(tokens.size, 0)
  },
)

await t.test('VerifiedTokens: an entry for an older key set is ignored', async (t) => {
  const tokens = new VerifiedTokens(() => 0)
  tokens.set('a', caller, 1, undefined, 100)
  t.equal(tokens.get('a', 2), undefined)
})

await t.test('VerifiedTokens: bounded in entries and in bytes', async (t) => {
  const tokens = new VerifiedTokens(() => 0)
  for (let i = 0; i < 10_500; i++) tokens.set(String(i), caller, 1, undefined, 100)
  t.ok(tokens.size <= 10_000)
  t.equal(tokens.get('0', 1), undefined, 'the oldest went first')
  for (let i = 0; i < 5_000; i++) tokens.set(`big${i}`, caller, 1, undefined, 80_000)
  t.ok(tokens.size < 500)
})

await t.test('VerifiedTokens: the key is a digest, not the token', async (t) => {
  t.equal(VerifiedTokens.key('abc'), 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
})
