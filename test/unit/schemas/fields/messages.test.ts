/** Messages about invalid documents: location, found value and allowed values, but never a value that may be secret. */
import t from 'tap'
import { formatViolations, validateManifest, validateRuntime } from '../../../../schemas/index.ts'
import { document, type Json, withValue } from '../tables/table.ts'

const server = document('MCPServer', { image: 'x', env: [{ name: 'A', value: 'b' }] })

function says(path: string, value: Json, base = server): string {
  return formatViolations(validateManifest(withValue(base, path, value)))
}

await t.test('messages: an unknown field suggests the most similar field', async (t) => {
  t.equal(says('spec.imgae', 'x'), 'spec.imgae: unknown field; did you mean "image"?')
  t.equal(says('spec.proxy_port', 1), 'spec.proxy_port: unknown field; did you mean "proxyPort"?')
  t.equal(
    says('spec.serviceaccount', 'x'),
    'spec.serviceaccount: unknown field; did you mean "serviceAccount"?',
  )
  t.equal(says('metadate', 'x'), 'metadate: unknown field; did you mean "metadata"?')
})

await t.test('messages: an unknown field without a similar one lists the allowed fields', async (t) => {
  t.equal(says('spec.audit', { verbose: true }), 'spec.audit.verbose: unknown field; allowed here: enabled')
})

await t.test('messages: a missing field describes the expected value', async (t) => {
  t.equal(
    formatViolations(validateManifest(document('MCPServerEntry', {}))),
    [
      'spec.groupRef: is required: expected an object with name',
      'spec.remoteUrl: is required: expected a URL that starts with http:// or https://',
      'spec.transport: is required: expected one of "sse" or "streamable-http"',
    ].join('\n'),
  )
})

await t.test('messages: a wrong type names the found type and the correct notation', async (t) => {
  t.equal(
    says('spec.proxyPort', '80'),
    'spec.proxyPort: expected a whole number from 1 to 65535, found a string of 2 characters; remove the quotes',
  )
  t.equal(says('spec.proxyPort', 0), 'spec.proxyPort: expected a whole number from 1 to 65535, found 0')
  t.equal(says('spec.image', 5), 'spec.image: expected a string, found a whole number; put it in quotes')
  t.equal(
    says('spec.trustProxyHeaders', 'true'),
    'spec.trustProxyHeaders: expected true or false, found a string of 4 characters; remove the quotes',
  )
  t.equal(
    says('spec.args', { a: 1 }),
    'spec.args: expected a list, found an object; start each item with "- "',
  )
  t.equal(says('spec.audit', []), 'spec.audit: expected an object, found an empty list')
  t.equal(says('spec.image', null), 'spec.image: expected a string, found null')
})

await t.test('messages: an invalid word suggests the nearest one and lists all allowed words', async (t) => {
  t.equal(
    says('spec.transport', 'studio'),
    'spec.transport: expected one of "stdio", "streamable-http" or "sse", found "studio"; did you mean "stdio"?',
  )
  t.equal(
    says('apiVersion', 'gatehouse.dev/v1'),
    'apiVersion: expected "gatehouse.dev/v1beta1", found "gatehouse.dev/v1"',
  )
})

await t.test('messages: an invalid format is described in words, not as a regular expression', async (t) => {
  t.equal(
    says('spec.groupRef', { name: 'My Group' }),
    "spec.groupRef.name: expected the name of a Kubernetes object (lowercase letters, digits, '-' and '.'), found \"My Group\"",
  )
  t.equal(says('spec.image', ''), 'spec.image: must not be empty: expected a string')
  t.equal(
    says('spec.resources', { limits: { memory: '1 gigabyte' } }),
    'spec.resources.limits.memory: expected a quantity such as 500m, 2 or 512Mi, found "1 gigabyte"',
  )
})

await t.test('messages: all errors are reported at once, sorted by path, without duplicates', async (t) => {
  const lines = formatViolations(
    validateManifest(document('MCPServer', { transport: 5, proxyPort: 0, replica: 1, groupRef: {} })),
  ).split('\n')
  t.same(
    lines.map((line) => line.split(': ')[0]),
    ['spec.groupRef.name', 'spec.image', 'spec.proxyPort', 'spec.replica', 'spec.transport'],
  )
})

await t.test('messages: keys that are not plain names are quoted in the path', async (t) => {
  const base = document('MCPToolConfig', {})
  t.equal(
    says('spec.toolsOverride', { 'git.create issue': {} }, base),
    'spec.toolsOverride["git.create issue"]: an override must set at least one of name, description and annotations',
  )
  t.equal(
    says('spec.env[0].value', 1),
    'spec.env[0].value: expected a string, found a whole number; put it in quotes',
  )
})

await t.test('messages: keys with characters that pointers escape', async (t) => {
  const base = document('MCPRemoteProxy', { remoteUrl: 'https://x' })
  for (const key of ['%', '%2', 'a/b', 'a~1b', '~', 'ü', 'a"b']) {
    const path = `spec.resourceOverrides.proxyService.labels[${JSON.stringify(key)}]`
    const doc = withValue(base, 'spec.resourceOverrides.proxyService.labels', { [key]: 1 })
    t.equal(
      formatViolations(validateManifest(doc)),
      `${path}: expected a string, found a whole number; put it in quotes`,
    )
  }
})

await t.test(
  'messages: a document without a kind, with an unknown kind, or that is not an object',
  async (t) => {
    const text = (doc: unknown) => formatViolations(validateManifest(doc))
    t.equal(text({ kind: 'MCPSever' }), 'kind: unknown kind "MCPSever"; did you mean "MCPServer"?')
    t.match(
      text({ kind: 'Deployment' }),
      /^kind: unknown kind "Deployment"; gatehouse\.dev\/v1beta1 has one of EmbeddingServer, /,
    )
    t.match(text({}), /^kind: is required: expected one of EmbeddingServer, /)
    t.equal(text('kind: MCPServer'), 'expected an object, found a string of 15 characters')
    t.equal(text(null), 'expected an object, found null')
    t.match(text({ kind: ['x'] }), /^kind: unknown kind a list of 1 item/)
  },
)

await t.test('messages: a rule is skipped when its field is invalid', async (t) => {
  const base = document('MCPExternalAuthConfig', { type: 'tokenExchang' })
  t.match(
    formatViolations(validateManifest(base)),
    /^spec\.type: expected one of "tokenExchange", (?:"\w+"(?:, | or ))+"\w+", found "tokenExchang"; did you mean "tokenExchange"\?$/,
  )
})

await t.test('messages: a value is not shown if it could be a secret', async (t) => {
  const secrets = [
    'sk-live-51HxyzABCDEF',
    'eyJhbGciOiJIUzI1NiJ9.e30.abc',
    'https://user:pass@idp.example.com',
    'line\nbreak',
  ]
  const strategy = (field: Json) => ({
    groupRef: { name: 'g' },
    incomingAuth: { type: 'anonymous' },
    config: { outgoingAuth: { source: 'inline', default: field } },
  })
  for (const secret of secrets) {
    const documents = [
      document('MCPServer', {
        image: 'x',
        env: [{ name: 'A', value: [secret] }],
        secrets: [{ name: 's', key: `${secret} ` }],
      }),
      document(
        'VirtualMCPServer',
        strategy({ type: 'token_exchange', tokenExchange: { tokenUrl: secret, clientSecret: [secret] } }),
      ),
      document(
        'VirtualMCPServer',
        strategy({
          type: 'header_injection',
          headerInjection: { headerName: 'A', headerValue: `${secret}\u0001` },
        }),
      ),
      document('MCPRemoteProxy', {
        remoteUrl: secret,
        headerForward: { addPlaintextHeaders: { A: `${secret}\n` } },
      }),
      document('MCPExternalAuthConfig', { type: 'bearerToken', bearerToken: { token: secret } }),
      document('MCPExternalAuthConfig', { type: 'bearerToken', bearerToken: secret }),
      document('MCPExternalAuthConfig', {
        type: 'tokenExchange',
        tokenExchange: { tokenUrl: 'x', audience: 'y', subjectTokenType: secret },
      }),
    ]
    for (const doc of documents) {
      const text = formatViolations(validateManifest(doc))
      t.not(text, '', 'something is wrong')
      if (text.includes(secret)) t.fail(`shows ${secret}`, { text })
    }
  }
})

await t.test('messages: an overly nested document is rejected without an exception', async (t) => {
  const deep = (levels: number): Json => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
  const nested = (levels: number) =>
    document('MCPServer', { image: 'x', podTemplateSpec: { a: deep(levels) } })
  t.same(validateManifest(nested(150)), [])
  t.equal(formatViolations(validateManifest(nested(50_000))), 'is nested more than 200 levels deep')
  t.same(validateRuntime('proxy', deep(50_000)).violations, [
    { path: '', message: 'is nested more than 200 levels deep' },
  ])
})

await t.test('messages: a huge or unusual document is handled without an exception', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`field${i}`, i]))
  t.equal(validateManifest(document('MCPServer', { image: 'x', ...many })).length, 900)
  const proto: unknown = JSON.parse(
    '{"apiVersion":"gatehouse.dev/v1beta1","kind":"MCPGroup","metadata":{"name":"x"},"spec":{"__proto__":{"x":1},"constructor":1}}',
  )
  t.equal(formatViolations(validateManifest(proto)).includes('spec.constructor: unknown field'), true)
  t.equal(({} as Record<string, unknown>)['x'], undefined)
})
