/** Backends can repeat a credential in a different form from the one that Gatehouse sent. */
import t from 'tap'
import { explainResponse } from '../../../runtime/vmcp/backends/transport/backend-answer.ts'

t.test('backend text: a credential in escaped JSON is masked', async (t) => {
  const sent = [{ authorization: 'Bearer abc/def"ghi' }]
  for (const body of [
    '{"message":"bad key abc\\/def\\"ghi"}',
    '{"message":"bad key \\u0061bc/def\\u0022ghi"}',
  ]) {
    const response = { status: 400, headers: {}, body: Buffer.from(body) }
    t.equal(explainResponse(response, { sentHeaders: sent, isQuoted: true }).text, 'bad key [redacted]', body)
  }
})

t.test('backend text: a credential in a URL, in HTML or in another case is masked', async (t) => {
  const sent = [{ authorization: 'Bearer aB3+x/y&z=', cookie: 'theme=dark-blue; sid=s3cr3t-session' }]
  for (const text of [
    'aB3%2Bx%2Fy%26z%3D',
    'aB3+x/y&amp;z=',
    'AB3+X/Y&Z=',
    's3cr3t-session',
    'S3CR3T-SESSION',
  ]) {
    const response = {
      status: 400,
      headers: {},
      body: Buffer.from(JSON.stringify({ message: `bad ${text}` })),
    }
    t.equal(explainResponse(response, { sentHeaders: sent, isQuoted: true }).text, 'bad [redacted]', text)
  }
})
