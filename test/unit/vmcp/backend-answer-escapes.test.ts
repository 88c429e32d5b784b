/** Backends repeat credentials in JSON with escapes. */
import t from 'tap'
import { answerOf, SentHeaders } from '../../../runtime/vmcp/backends/transport/backend-answer.ts'

t.test('backend text: a credential in escaped JSON is masked', async (t) => {
  const sent = new SentHeaders()
  sent.note({ authorization: 'Bearer abc/def"ghi' })
  for (const body of [
    '{"message":"bad key abc\\/def\\"ghi"}',
    '{"message":"bad key \\u0061bc/def\\u0022ghi"}',
  ]) {
    const response = { status: 400, headers: {}, body: Buffer.from(body) }
    t.equal(answerOf(response, { sent, isQuoted: true }).text, 'bad key [redacted]', body)
  }
})
