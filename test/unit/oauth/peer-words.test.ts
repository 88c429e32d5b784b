/** Error descriptions from a server: logged, bounded and sanitized, and never sent to clients. */
import t from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { readAuthorizationCode, refreshGrant, serverWords } from '../../../runtime/oauth/index.ts'
import { peerWords, wordsOf } from '../../../runtime/oauth/refusals/peer-words.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

const bodies: readonly (readonly [string, PeerResponse, string])[] = [
  [
    'error_description',
    { status: 400, body: { error: 'invalid_grant', error_description: 'AADSTS50076: use MFA' } },
    'AADSTS50076: use MFA',
  ],
  ['message', { status: 403, body: { message: 'Your IP is not allowed' } }, 'Your IP is not allowed'],
  ['an error object', { status: 400, body: { error: { message: 'bad client' } } }, 'bad client'],
  ['Okta', { status: 400, body: { errorSummary: 'Policy evaluation failed' } }, 'Policy evaluation failed'],
  [
    'a page',
    {
      status: 502,
      headers: { 'content-type': 'text/html' },
      body: '<html><style>p{}</style><h1>Bad gateway</h1>\\n<p>proxy.corp</p>',
    },
    'Bad gateway',
  ],
  ['a page with 200', { body: '<p>Please sign in to the Wi-Fi</p>' }, 'Please sign in to the Wi-Fi'],
]

for (const [name, response, words] of bodies) {
  await t.test(`words: ${name}`, async (t) => {
    const peer = await startLoopback(() => response)
    t.teardown(() => peer.close())
    const error: unknown = await refreshGrant({
      server: { issuer: peer.url, token_endpoint: `${peer.url}/token` },
      client: { clientId: 'c' },
      fetch,
      refreshToken: 'rt',
    }).catch((failure: unknown) => failure)
    if (!(error instanceof Error)) throw new Error('a refusal was expected')
    t.match(serverWords(error), words)
    t.match(serverWords(new Error('outer', { cause: error })), words)
    t.notMatch(error.message, words, 'the message may reach clients')
    const lines: string[] = []
    makeLog({ destination: { write: (line) => void lines.push(line) } }).warn('it failed', { err: error })
    t.match(lines.join(''), words)
  })
}

t.test('words: from a redirect', (t) => {
  const params = new URLSearchParams({ error: 'access_denied', error_description: 'Ask\nyour admin\u202e' })
  try {
    readAuthorizationCode(params, {})
    t.fail('expected a rejection')
  } catch (error) {
    t.equal(serverWords(error), 'Ask your admin')
  }
  t.end()
})

t.test('words: sanitized, bounded, and without texts that look like tokens', (t) => {
  t.equal(peerWords('a\u001b[31mb\r\n\u0000c\u200b\u2028d\u009b'), 'a [31mb c d')
  t.equal(peerWords('x '.repeat(1_000))?.length, 301)
  const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLXRoYXQtaXMtbG9uZw'
  t.equal(peerWords(`the token ${token} is revoked`), 'the token … is revoked')
  for (const empty of ['', ' \n', '\u0000']) t.equal(peerWords(empty), undefined)
  t.equal(wordsOf('', undefined), undefined)
  t.equal(wordsOf('{}', {}), undefined)
  t.equal(wordsOf(`${'<'.repeat(100_000)}x`, undefined)?.endsWith('…'), true, 'in bounded time')
  t.end()
})
