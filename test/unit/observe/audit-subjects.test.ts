/** The caller in an audit line: subject, issuer and OAuth client. */
import t from 'tap'
import { anonymousCaller } from '../../../runtime/incoming/index.ts'
import { callerFacts, makeCaller } from '../../../runtime/net/index.ts'
import { subjectsOf } from '../../../runtime/observe/audit/exchange-line.ts'

const issuer = 'https://idp.example'

function subjectsWith(claims: Readonly<Record<string, unknown>>) {
  const all = { sub: 'alice', ...claims }
  return subjectsOf(makeCaller({ issuer, subject: 'alice', claims: all, facts: callerFacts(all) }), undefined)
}

t.test('subjects: a caller with a token has an issuer and a client', async (t) => {
  t.match(subjectsWith({ client_id: 'desk' }), { user_id: 'alice', issuer, client_id: 'desk' })
  t.match(subjectsWith({ azp: 'web' }), { client_id: 'web' })
  t.match(subjectsWith({}), { issuer, client_id: undefined })
})

t.test('subjects: the id of a described client is shortened to its host', async (t) => {
  const client_id = 'https://app.example:8443/client.json?key=1'
  t.equal(subjectsWith({ client_id })['client_id'], 'app.example:8443')
  t.equal(subjectsWith({ client_id: 'x'.repeat(65) })['client_id'], 'x'.repeat(64))
})

t.test('subjects: callers without a token have neither issuer nor client', async (t) => {
  for (const caller of [anonymousCaller(), undefined]) {
    t.match(subjectsOf(caller, { name: 'wire', version: '1' }), {
      issuer: undefined,
      client_id: undefined,
      client_name: 'wire',
    })
  }
})
