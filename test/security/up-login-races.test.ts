/** Logins of `gatehouse up --login` that are in flight while their user is removed or replaced. */
import { join } from 'node:path'
import t from 'tap'
import { Users } from '../../runtime/tools/up/identity/users.ts'

const passkey = { id: 'p1', publicKey: 'AAAA', counter: 0, host: 'localhost' }

t.test('up --login: a login that ends after its user was removed does not bring the user back', async (t) => {
  const users = new Users(join(t.testdir({}), 'users.json'))
  users.enrol(users.invite('alice'), { passkey })
  t.match(users.usedPasskey('p1', 1), { name: 'alice', passkeys: [{ counter: 1 }] })
  users.remove('alice')
  t.equal(users.usedPasskey('p1', 2), undefined)
  t.strictSame(users.all, [])
})

t.test('up --login: a login with a replaced passkey does not restore the passkey', async (t) => {
  const users = new Users(join(t.testdir({}), 'users.json'))
  users.enrol(users.invite('alice'), { passkey })
  users.enrol(users.invite('alice'), { password: 'scrypt$1$1$1$AA$AA' })
  t.equal(users.usedPasskey('p1', 1), undefined)
  t.match(users.named('alice'), { passkeys: [], password: 'scrypt$1$1$1$AA$AA' })
})
