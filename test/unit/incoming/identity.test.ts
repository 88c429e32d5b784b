/** Callers of servers without authentication, and callers derived from claims. */
import { inspect } from 'node:util'
import t from 'tap'
import { callerOf } from '../../../runtime/incoming/identity.ts'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { proves } from '../../helpers/proves.ts'

const rules = { issuer: 'i', origin: 'external' } as const

await t.test('anonymous: all callers are the same caller, without a token or a challenge', async (t) => {
  proves('3.config.incomingAuth.type')
  const authenticator = makeAuthenticator({ type: 'anonymous' })
  const caller = await authenticator.authenticate('Bearer ignored')
  t.match(caller, {
    subject: 'anonymous',
    issuer: 'gatehouse-local',
    displayName: 'Anonymous User',
    claims: { email: 'anonymous@localhost', aud: 'gatehouse' },
    token: undefined,
  })
  t.equal(authenticator.challenge(), undefined)
})

await t.test('local: the caller is the user of the operating system', async (t) => {
  const caller = await makeAuthenticator({ type: 'local', username: 'dev' }).authenticate(undefined)
  t.match(caller, { subject: 'dev', issuer: 'gatehouse-local', displayName: 'Local User: dev' })
})

await t.test(
  'callerOf: name, otherwise email, otherwise subject; all claims are kept; a missing subject is rejected',
  async (t) => {
    t.equal(callerOf({ sub: 's', email: 'e', name: 'n' }, 't', rules).displayName, 'n')
    t.equal(callerOf({ sub: 's', email: 'e', name: '' }, 't', rules).displayName, 'e')
    t.equal(callerOf({ sub: 's' }, 't', rules).displayName, 's')
    t.same(callerOf({ sub: 's', groups: ['g'], x: { y: 1 } }, 't', rules).claims, {
      sub: 's',
      groups: ['g'],
      x: { y: 1 },
    })
    t.equal(callerOf({ sub: 's' }, 't', rules).issuer, 'i')
    for (const sub of [undefined, '', 7, null])
      t.throws(() => callerOf({ sub }, 't', rules), { name: 'TokenRefused' })
  },
)

await t.test('callerOf: the token does not appear in logs', async (t) => {
  const caller = callerOf({ sub: 's' }, 'tok-secret', rules)
  t.equal(caller.token, 'tok-secret')
  t.notMatch(JSON.stringify(caller) + inspect(caller), /tok-secret/)
})
