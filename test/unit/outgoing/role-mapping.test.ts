/** Role selection: order, claims, expressions, fallback; and names of role sessions. */
import t from 'tap'
import { sessionName } from '../../../runtime/outgoing/strategies/cloud-sts.ts'
import { makeRoleChooser } from '../../../runtime/outgoing/aws/role-mapping.ts'
import { proves } from '../../helpers/proves.ts'

const claims = { sub: 'u', groups: ['dev', 'ops'], roles: ['x'], email: 'u@corp.example', level: 3 }

await t.test('makeRoleChooser: lowest priority first, unset last, ties in configuration order', async (t) => {
  proves('2.cloudSts.roleMappings', '2.cloudSts.roleMappings.priority')
  const choose = makeRoleChooser({
    roleMappings: [
      { roleArn: 'unset-1', claim: 'dev' },
      { roleArn: 'unset-2', claim: 'dev' },
      { roleArn: 'five-a', claim: 'ops', priority: 5 },
      { roleArn: 'five-b', claim: 'ops', priority: 5 },
      { roleArn: 'zero', claim: 'nobody', priority: 0 },
    ],
  })
  t.equal(choose(claims), 'five-a')
  t.equal(choose({ groups: ['dev'] }), 'unset-1')
  t.equal(choose({ groups: ['nobody', 'dev'] }), 'zero')
})

await t.test(
  'makeRoleChooser: roleClaim, by default groups; the value is data, not an expression',
  async (t) => {
    proves('2.cloudSts.roleClaim', '2.cloudSts.roleMappings.claim')
    t.equal(
      makeRoleChooser({ roleClaim: 'roles', roleMappings: [{ roleArn: 'r', claim: 'x' }] })(claims),
      'r',
    )
    const tricky = '"] || true || ["'
    const choose = makeRoleChooser({ roleMappings: [{ roleArn: 'r', claim: tricky }] })
    t.equal(choose(claims), undefined)
    t.equal(choose({ groups: [tricky] }), 'r')
    for (const groups of [undefined, 'dev', null, { x: 1 }, 7])
      t.equal(makeRoleChooser({ roleMappings: [{ roleArn: 'r', claim: 'dev' }] })({ groups }), undefined)
  },
)

await t.test(
  'makeRoleChooser: a matcher gets all claims, and is skipped if it fails or returns no boolean',
  async (t) => {
    proves('2.cloudSts.roleMappings.matcher')
    const choose = (matcher: string) =>
      makeRoleChooser({ fallbackRoleArn: 'f', roleMappings: [{ roleArn: 'r', matcher }] })(claims)
    t.equal(choose('claims.email.endsWith("@corp.example") && claims.level >= 3'), 'r')
    t.equal(choose('claims.missing == "x"'), 'f')
    t.equal(choose('"dev"'), 'f')
    t.equal(choose('unknown(claims)'), 'f')
    t.throws(() => choose('1 +'), { code: 'INVALID_CONFIG' })
  },
)

await t.test('makeRoleChooser: the fallback is used when nothing matches or no mapping exists', async (t) => {
  proves('2.cloudSts.fallbackRoleArn')
  t.equal(makeRoleChooser({ fallbackRoleArn: 'f' })(claims), 'f')
  t.equal(
    makeRoleChooser({ fallbackRoleArn: 'f', roleMappings: [{ roleArn: 'r', claim: 'no' }] })(claims),
    'f',
  )
  t.equal(makeRoleChooser({ roleMappings: [{ roleArn: 'r', claim: 'no' }] })(claims), undefined)
})

await t.test('sessionName: valid names stay, and others become valid and stay distinct', async (t) => {
  t.equal(sessionName('alice@corp.example'), 'alice@corp.example')
  const odd = [
    'a',
    'a b',
    'a|b',
    'auth0|1',
    'ü',
    'x'.repeat(65),
    `${'x'.repeat(64)}y`,
    `${'x'.repeat(64)}z`,
  ].map(sessionName)
  for (const name of odd) t.match(name, /^[\w+=,.@-]{2,64}$/)
  t.equal(new Set(odd).size, odd.length)
})
