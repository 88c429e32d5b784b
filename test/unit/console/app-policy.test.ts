/** The Content Security Policy of an app's page in the console. */
import t from 'tap'
import { appPolicy } from '../../../runtime/console/http/app-policy.ts'

function directives(csp: unknown, host = 'console.example.com'): Readonly<Record<string, string>> {
  return Object.fromEntries(
    appPolicy(csp, host)
      .split('; ')
      .map((directive) => [directive.split(' ')[0], directive.split(' ').slice(1).join(' ')]),
  )
}

t.test('app policy: a page without declared origins loads and connects nowhere', async (t) => {
  for (const csp of [undefined, null, 'x', [], {}, { connectDomains: 'x' }, { connectDomains: [1] }])
    t.same(
      directives(csp),
      {
        sandbox: 'allow-scripts',
        'default-src': "'none'",
        'script-src': "'unsafe-inline'",
        'style-src': "'unsafe-inline'",
        'img-src': 'data: blob:',
        'font-src': 'data:',
        'media-src': 'data: blob:',
        'connect-src': "'none'",
        'frame-src': "'none'",
        'base-uri': "'none'",
        'form-action': "'none'",
        'frame-ancestors': "'self'",
      },
      JSON.stringify(csp),
    )
})

t.test('app policy: declared origins, without directives and without the console', async (t) => {
  const bad = [
    "https://x.example; script-src 'unsafe-eval'",
    "'self'",
    '*',
    'https://a.example/path',
    'https://a.example\r\nx: y',
    'data:',
    'https://console.example.com',
    'http://CONSOLE.example.com:8080',
    'https://*.example.com',
    'wss://*.com',
    `https://${'a'.repeat(300)}`,
  ]
  const good = ['https://api.example.net', 'wss://*.live.example.net:8443', 'https://other.example.com']
  const found = directives({
    connectDomains: [...bad, ...good],
    resourceDomains: ['https://cdn.example.net', ...bad],
    frameDomains: bad,
    baseUriDomains: bad,
  })
  t.equal(found['connect-src'], good.join(' '))
  t.equal(found['script-src'], "'unsafe-inline' https://cdn.example.net")
  t.equal(found['img-src'], 'data: blob: https://cdn.example.net')
  t.equal(found['frame-src'], "'none'")
  t.equal(found['base-uri'], "'none'")
})

t.test('app policy: a console on this machine removes every loopback host', async (t) => {
  const local = ['http://127.0.0.1:9000', 'http://localhost:4484', 'http://127.9.9.9', 'http://app.localhost']
  for (const host of ['127.0.0.1:4484', 'localhost:4484', '[::1]:4484'])
    t.equal(
      directives({ connectDomains: [...local, 'https://a.example'] }, host)['connect-src'],
      'https://a.example',
    )
})

t.test('app policy: at most 100 origins of one kind', async (t) => {
  const connectDomains = Array.from({ length: 200 }, (_, i) => `https://h${i}.example`)
  t.equal(directives({ connectDomains })['connect-src']?.split(' ').length, 100)
})
