/** The client of a token whose claims could name several clients. */
import t from 'tap'
import { callerFacts } from '../../../runtime/net/index.ts'

t.test('the standard claim for the client takes precedence over claims of single vendors', async (t) => {
  const ids = { client_id: 'rfc9068', azp: 'openid', cid: 'okta', appid: 'entra' }
  const names = ['client_id', 'azp', 'cid', 'appid'] as const
  for (const [index, name] of names.entries()) {
    const claims = Object.fromEntries(names.slice(index).map((member) => [member, ids[member]]))
    t.equal(callerFacts(claims, 'external').clientId, ids[name], name)
  }
  // A user's token names the user's client in client_id. A second claim must not make the user a machine.
  t.equal(callerFacts({ sub: 'alice', client_id: 'app', azp: 'alice' }, 'external').kind, 'user')
  t.equal(callerFacts({ client_id: '', azp: 'openid' }, 'external').clientId, 'openid', 'an empty claim')
  t.equal(callerFacts({ client_id: 7 }, 'external').clientId, undefined, 'not a string')
})
