/**
 * Signature Version 4, checked with the provider's published test vectors, and the parts of a request that it covers.
 */
import t from 'tap'
import { signRequest } from '../../../runtime/outgoing/aws/sigv4.ts'
import { testRequest } from '../../helpers/outgoing/outgoing.ts'

/** Credentials, date and host of the published suite. */
const suite = {
  region: 'us-east-1',
  service: 'service',
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: '',
  date: new Date('2015-08-30T12:36:00Z'),
}
const scope = 'Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request'

const vectors: readonly (readonly [string, Parameters<typeof testRequest>[0], string, string])[] = [
  [
    'get-vanilla',
    { method: 'GET', url: new URL('https://example.amazonaws.com/'), headers: {}, body: undefined },
    'host;x-amz-date',
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  [
    'get-vanilla-query-order-key-case',
    {
      method: 'GET',
      url: new URL('https://example.amazonaws.com/?Param2=value2&Param1=value1'),
      headers: {},
      body: undefined,
    },
    'host;x-amz-date',
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  [
    'post-vanilla',
    { method: 'POST', url: new URL('https://example.amazonaws.com/'), headers: {}, body: undefined },
    'host;x-amz-date',
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ],
  [
    'post-x-www-form-urlencoded',
    {
      method: 'POST',
      url: new URL('https://example.amazonaws.com/'),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: Buffer.from('Param1=value1'),
    },
    'content-type;host;x-amz-date',
    'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  ],
]

for (const [name, from, headers, signature] of vectors) {
  await t.test(`signRequest: published vector ${name}`, async (t) => {
    const request = testRequest(from)
    await signRequest(request, suite)
    t.equal(
      request.headers['authorization'],
      `AWS4-HMAC-SHA256 ${scope}, SignedHeaders=${headers}, Signature=${signature}`,
    )
    t.equal(request.headers['x-amz-date'], '20150830T123600Z')
  })
}

await t.test(
  'signRequest: the signature covers the session token, but not headers that may change in transit',
  async (t) => {
    const request = testRequest({
      headers: {
        'content-type': 'application/json',
        'user-agent': 'u',
        accept: '*/*',
        traceparent: 'x',
        'x-amz-target': 't',
        Authorization: 'Bearer client',
      },
    })
    await signRequest(request, { ...suite, sessionToken: 'st' })
    t.match(
      request.headers['authorization'],
      /SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,/,
    )
    t.equal(request.headers['x-amz-security-token'], 'st')
    t.notOk('Authorization' in request.headers, 'the client’s own credential is removed')
  },
)

await t.test('signRequest: signing a request again replaces the first signature', async (t) => {
  const request = testRequest()
  await signRequest(request, { ...suite, sessionToken: 'one' })
  const first = request.headers['authorization']
  await signRequest(request, { ...suite, sessionToken: 'two' })
  t.not(request.headers['authorization'], first)
  const fresh = testRequest()
  await signRequest(fresh, { ...suite, sessionToken: 'two' })
  t.same(request.headers, fresh.headers)
})
