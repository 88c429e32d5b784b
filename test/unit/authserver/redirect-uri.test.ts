/** Comparison of redirect URIs. Registration rules are in behaviour/authserver/clients/register. */
import t from 'tap'
import {
  isUnownedRedirect,
  matchesRedirectUri,
  redirectHost,
  redirectUriViolation,
} from '../../../runtime/authserver/clients/redirect-uri.ts'

t.test('redirect: a host with characters that a policy header would interpret is invalid', async (t) => {
  const type = 'native'
  for (const host of [
    'x;frame-ancestors',
    'x,default-src',
    "x'y",
    'x*y',
    'x!y',
    'x(y)',
    'x&y',
    'x$y',
    'x=y',
    'x+y',
    'x"y',
  ]) {
    t.equal(redirectUriViolation(`https://${host}/cb`, type), 'must have a plain host name', host)
  }
  for (const host of [
    'a.example',
    'a_b.example',
    'A.example:8443',
    '[2001:db8::1]',
    '192.0.2.1',
    'xn--bcher-kva.example',
  ]) {
    t.equal(redirectUriViolation(`https://${host}/cb`, type), undefined, host)
  }
})

t.test('redirect: an http(s) URI starts with the origin that the parser returns for it', async (t) => {
  const type = 'native'
  for (const uri of [
    'https:evil.example/cb',
    'https:/evil.example/cb',
    'https:/path',
    'https:///evil.example/cb',
    'HTTPS:evil.example/cb',
    'HTTPS:\\\\evil.example/cb',
    'https:/\\evil.example/cb',
    'http:127.0.0.1/cb',
    'http:/localhost/cb',
    'https://@evil.example/cb',
    'https://:@evil.example/cb',
    'https://user@evil.example/cb',
    'https://user:password@evil.example/cb',
    'https://good.example@evil.example/cb',
    'https://ev%69l.example/cb',
    'https://evil.example\t/cb',
    'https://evil\n.example/cb',
    ' https://evil.example/cb',
    'https://evil.example/cb\r\n',
    'https://evil.example/cb#',
    'https://evil.example/cb#fragment',
    'https://0x7f.1/cb',
    'http://127.1:8080/cb',
    'http://[0:0:0:0:0:0:0:1]/cb',
    'https://evil.example:0443/cb',
    'https://evil.example:/cb',
  ]) {
    t.type(redirectUriViolation(uri, type), 'string', JSON.stringify(uri))
  }
  for (const uri of [
    'https://a.example/cb',
    'HTTPS://A.Example/cb',
    'https://a.example:443/cb',
    'https://a.example:8443/cb?x=1',
    'https://a.example',
    'https://a.example?x=1',
    'http://127.0.0.1:33418/cb',
    'http://LOCALHOST/cb',
    'http://localhost:80/cb',
    'http://[::1]:1/cb',
  ]) {
    t.equal(redirectUriViolation(uri, type), undefined, uri)
  }
})

t.test('redirect: URIs must be equal, except for the port of a loopback address', async (t) => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['https://a.example/cb', 'https://a.example/cb', true],
    ['https://a.example/cb', 'https://a.example/cb/', false],
    ['https://a.example/cb', 'https://A.example/cb', false],
    ['https://a.example/cb', 'https://a.example:443/cb', false],
    ['https://a.example/cb', 'https://a.example/cb?', false],
    ['https://a.example/cb', 'https://a.example/x/../cb', false],
    ['https://a.example:8443/cb', 'https://a.example:9443/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:1234/cb', true],
    ['http://127.0.0.1:80/cb', 'http://127.0.0.1:1234/cb', true],
    ['http://127.0.0.1:5555/cb', 'http://127.0.0.1/cb', true],
    ['http://[::1]:1/cb', 'http://[::1]:2/cb', true],
    ['http://localhost:1/cb', 'http://localhost:2/cb', true],
    ['http://localhost:1/cb', 'http://LOCALHOST:2/cb', true],
    ['http://localhost:1/cb?x=1', 'http://localhost:2/cb?x=1', true],
    ['http://localhost:1/cb', 'http://localhost:2/cb?', false],
    ['http://localhost:1/cb', 'http://localhost:2/CB', false],
    ['http://localhost:1/cb', 'http://localhost:2/%63b', false],
    ['http://localhost:1', 'http://localhost:2', true],
    ['http://localhost:1', 'http://localhost:2/', false],
    ['http://localhost:1/cb', 'http://127.0.0.1:1/cb', false],
    ['http://localhost:1/cb', 'https://localhost:1/cb', false],
    ['http://localhost:1/cb', 'http://localhost:0/cb', false],
    ['http://localhost:1/cb', 'http://localhost:70000/cb', false],
    ['http://localhost:1/cb', 'http://localhost:2@evil.example/cb', false],
    ['http://localhost:1/cb', 'http://user@localhost:2/cb', false],
    ['http://localhost:1/cb', 'http://localhost:2/cb#f', false],
    ['http://localhost:1/cb', 'http://localhost.evil.example:1/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.2/cb', false],
    ['https:evil.example/cb', 'https:evil.example/cb', false],
    ['https:/path', 'https:/path', false],
    ['https://@evil.example/cb', 'https://@evil.example/cb', false],
    ['com.example.app:/cb', 'com.example.app:/cb', true],
    ['com.example.app:/cb', 'com.example.app:/cb/more', false],
  ]
  for (const [registered, requested, expected] of cases) {
    t.equal(
      matchesRedirectUri(requested, ['https://other.example/', registered]),
      expected,
      `${registered} <- ${requested}`,
    )
  }
})

t.test('redirect: the host that a user sees, and redirect URIs that any program can claim', async (t) => {
  t.equal(redirectHost('https://a.example:8443/cb'), 'a.example:8443')
  t.equal(redirectHost('com.example.app:/cb'), 'com.example.app:')
  t.equal(isUnownedRedirect('https://a.example/'), false)
  for (const uri of ['http://localhost/cb', 'http://127.0.0.1:1/', 'com.example.app:/cb'])
    t.equal(isUnownedRedirect(uri), true)
})
