/** Claims of another issuer: groups and roles get a prefix, and foreign ones are removed. */
import t from 'tap'
import { claimRenamer, foreignGroupRemover } from '../../../runtime/incoming/prefixes.ts'

const issuer = { issuer: 'https://ci.example', audience: 'me' }

/** Each claim that policies or decision points read as groups or roles. */
const groupClaims = ['groups', 'roles', 'cognito:groups', 'mgroups', 'mroles']

t.test('each claim with groups gets the prefix, and no other claim does', async (t) => {
  for (const name of groupClaims) {
    const renamed = claimRenamer(issuer)({ sub: 'ci', [name]: ['admin'], scope: 'admin' })
    t.strictSame(
      renamed,
      {
        sub: 'https://ci.example#ci',
        [name]: ['https://ci.example#admin'],
        scope: 'admin',
      },
      name,
    )
  }
})

t.test('foreign groups are removed from each claim with groups', async (t) => {
  for (const name of groupClaims) {
    const kept = foreignGroupRemover([issuer])({ sub: 'a', [name]: ['https://ci.example#admin', 'admin'] })
    t.strictSame(kept, { sub: 'a', [name]: ['admin'] }, name)
  }
})

t.test('the keys of an object claim are roles, except the steps of a configured path', async (t) => {
  const paths = ['realm.roles', 'roles.list']
  const claims = {
    sub: 'ci',
    groups: { admin: { org: 'admin' } },
    realm: { roles: { owner: true }, other: { owner: true } },
    roles: { list: ['red'], blue: {} },
  }
  t.strictSame(claimRenamer({ ...issuer, groupPrefix: 'ci/' }, paths)(claims), {
    sub: 'https://ci.example#ci',
    groups: { 'ci/admin': { org: 'admin' } },
    realm: { roles: { 'ci/owner': true }, other: { owner: true } },
    roles: { list: ['ci/red'], 'ci/blue': {} },
  })
  const kept = foreignGroupRemover([{ ...issuer, groupPrefix: 'ci/' }], paths)
  t.strictSame(kept({ groups: { 'ci/admin': {}, admin: {} }, roles: { list: ['ci/red', 'red'] } }), {
    groups: { admin: {} },
    roles: { list: ['red'] },
  })
})
