/** Files of `--webhook-config`: both spellings, how files are merged, and errors in a file. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readWebhookFiles } from '../../../runtime/config/index.ts'
import { webhookFileViolation } from '../../../runtime/policy/index.ts'
import type { RuntimeWebhooks } from '../../../schemas/index.ts'

const url = 'https://hook.example/check'

function read(t: Test, contents: readonly unknown[], env: Record<string, string> = {}): RuntimeWebhooks {
  const path = mkdtempSync(join(tmpdir(), 'webhook-files-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  const files = contents.map((content, index) => {
    const file = join(path, `${index}.yaml`)
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return file
  })
  return readWebhookFiles(files, env, { check: () => [] })
}

const said = (t: Test, contents: readonly unknown[], env?: Record<string, string>): string => {
  try {
    read(t, contents, env)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

t.test("the members of ToolHive have the same meaning as Gatehouse's own", async (t) => {
  const theirs = `
validating:
  - name: v
    url: ${url}
    timeout: 3000000000
    failure_policy: ignore
    hmac_secret_ref: /etc/hmac
    tls_config: {ca_bundle_path: ca.pem, client_cert_path: c.pem, client_key_path: k.pem, insecure_skip_verify: false}
`
  const ours = {
    name: 'v',
    url,
    timeout: '3000000000ns',
    failurePolicy: 'ignore',
    hmacSecretPath: '/etc/hmac',
    caBundlePath: 'ca.pem',
    clientCertificatePath: 'c.pem',
    clientKeyPath: 'k.pem',
  }
  t.same(read(t, [theirs]), read(t, [{ validating: [ours] }]))
  t.match(read(t, [{ mutating: [{ name: 'm', url }] }]).mutating, [
    { timeout: '10s', failurePolicy: 'fail', phase: 'request', mode: 'enforce' },
  ])
})

t.test('later files replace webhooks by list and name, and the order stays', async (t) => {
  const hook = (name: string, at: string) => ({ name, url: `${url}/${at}` })
  const { validating, mutating } = read(t, [
    { validating: [hook('a', '1'), hook('b', '1')] },
    { validating: [hook('c', '2'), hook('a', '2')], mutating: [hook('m', '2')] },
  ])
  t.same(
    [...(validating ?? []), ...(mutating ?? [])].map((one) => `${one.name} ${one.url.at(-1)}`),
    ['a 2', 'b 1', 'c 2', 'm 2'],
  )
})

t.test('a secret is read from the location that the provider uses', async (t) => {
  const secret = (hmac_secret_ref: string, env: Record<string, string>) =>
    read(t, [{ validating: [{ name: 'v', url, hmac_secret_ref }] }], env).validating?.[0]
  const variable = 'GATEHOUSE_SECRET_A_B'
  t.match(secret('a-b', { [variable]: 'x' }), { hmacSecretEnv: variable })
  t.match(secret('a-b,target=anything', { [variable]: 'x' }), { hmacSecretEnv: variable })
})

const one = (more: Record<string, unknown>) => [{ validating: [{ name: 'v', url, ...more }] }]
const lines: readonly (readonly [string, readonly unknown[], RegExp])[] = [
  ['nothing in it', [''], /0\.yaml.*expected/s],
  ['no webhook', [{ validating: [] }], /needs at least one webhook in mutating or validating/],
  ['another member of the file', [{ validate: [] }], /- validate: unknown field/],
  ['a list that is none', [{ validating: { name: 'v' } }], /- validating: expected a list/],
  ['a webhook that is none', [{ validating: ['v'] }], /- validating\[0\]: expected an object/],
  ['no name and no url', [{ mutating: [{}] }], /mutating\[0\]\.name: .*\n.*mutating\[0\]\.url: /],
  [
    'an unknown member of a webhook',
    one({ failure_polcy: 'fail' }),
    /validating\[0\]\.failure_polcy: unknown field/,
  ],
  [
    'a member of the prototype',
    ['validating: [{name: v, url: "https://x.example", __proto__: {}}]'],
    /__proto__/,
  ],
  ['another policy', one({ failure_policy: 'open' }), /validating\[0\]\.failure_policy: /],
  [
    'an incomplete client certificate',
    one({ tls_config: { client_cert_path: 'c' } }),
    /tls_config\.client_key_path: .*must be set together/,
  ],
  [
    'the other part only',
    one({ tls_config: { client_key_path: 'c' } }),
    /tls_config\.client_cert_path.*must be set together/,
  ],
  [
    'an empty path',
    one({ tls_config: { ca_bundle_path: '' } }),
    /validating\[0\]\.tls_config\.ca_bundle_path: /,
  ],
  [
    'an unknown member of TLS',
    one({ tls_config: { ca: 'x' } }),
    /validating\[0\]\.tls_config\.ca: unknown field/,
  ],
  ['TLS that is no object', one({ tls_config: null }), /validating\[0\]\.tls_config: expected an object/],
  [
    'skipped verification with a CA bundle',
    one({ tls_config: { insecure_skip_verify: true, ca_bundle_path: 'c' } }),
    /tls_config\.insecure_skip_verify cannot be combined with tls_config\.ca_bundle_path/,
  ],
  [
    'plain http',
    one({ url: 'http://hook.example' }),
    /url: must be https, unless tls_config\.insecure_skip_verify|url: must be https, unless insecureSkipVerify/,
  ],
  ['a metadata address', one({ url: 'https://169.254.169.254/x' }), /validating\[0\]\.url: .*never allowed/],
  ['a port that is none', one({ url: 'https://hook.example:99999/' }), /validating\[0\]\.url: is not a URL/],
  ['a host that is none', one({ url: 'https://%zz/' }), /validating\[0\]\.url: is not a URL/],
  [
    'seconds as a number',
    one({ timeout: 5 }),
    /validating\[0\]\.timeout: a number without a unit is in nanoseconds.*5s/,
  ],
  ['half a second', one({ timeout: '0.5s' }), /validating\[0\]\.timeout: must be from 1s to 30s/],
  ['a long time', one({ timeout: '1m' }), /validating\[0\]\.timeout: must be from 1s to 30s/],
  ['a time that is none', one({ timeout: -1 }), /validating\[0\]\.timeout: /],
  [
    'both spellings',
    one({ failure_policy: 'fail', failurePolicy: 'ignore' }),
    /failurePolicy: is another spelling of failure_policy; set only one of them/,
  ],
  [
    'both spellings of TLS',
    one({ caBundlePath: 'a', tls_config: { ca_bundle_path: 'b' } }),
    /tls_config\.ca_bundle_path: is another spelling of caBundlePath/,
  ],
  ['two secrets', one({ hmacSecretPath: '/a', hmacSecretEnv: 'A' }), /mutually exclusive/],
  [
    'a secret that does not exist',
    one({ hmac_secret_ref: 'none' }),
    /validating\[0\]\.hmac_secret_ref: secret "none": not found/,
  ],
  ['a secret without a name', one({ hmac_secret_ref: '' }), /hmac_secret_ref: expected the name of a secret/],
  ['a secret of another form', one({ hmac_secret_ref: '../etc' }), /hmac_secret_ref: secret name/],
  [
    'a name twice',
    [
      {
        validating: [
          { name: 'v', url },
          { name: 'v', url },
        ],
      },
    ],
    /validating/,
  ],
  [
    'a name in both lists of two files',
    [{ validating: [{ name: 'v', url }] }, { mutating: [{ name: 'v', url }] }],
    /all files together.*a name must not appear in both/s,
  ],
  [
    'more than the maximum',
    [0, 1].map((n) => ({ validating: Array.from({ length: 9 }, (_, i) => ({ name: `v${n}${i}`, url })) })),
    /all files together.*validating/s,
  ],
  ['two documents', ['validating: []\n---\nvalidating: []\n'], /must not contain a second document/],
  ['no YAML', ['{'], /0\.yaml/],
]

t.test('an error contains the file, the member and the rule', async (t) => {
  for (const [what, contents, message] of lines) t.match(said(t, contents), message, what)
  const all = said(t, [{ validating: [{ name: 'V', url: 'x' }] }, { mutating: [{ timeout: 1 }] }, ''])
  for (const part of ['0.yaml', 'validating[0].name', '1.yaml', 'mutating[0].timeout', '2.yaml'])
    t.match(all, part, 'all errors of all files are reported at once')
  t.throws(
    () => readWebhookFiles(['/does/not/exist'], {}, { check: () => [] }),
    /--webhook-config: .*\/does\/not\/exist cannot be read/,
  )
})

t.test('an unreadable file is reported with the member that names it', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'webhook-files-caBundlePath-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  const [empty, file] = [join(path, 'empty'), join(path, 'hooks.json')]
  writeFileSync(empty, '\n')
  const saidOf = (more: Record<string, unknown>): string => {
    writeFileSync(file, JSON.stringify({ validating: [{ name: 'v', url, ...more }] }))
    try {
      const check: Parameters<typeof readWebhookFiles>[2]['check'] = (webhook, list, field) =>
        webhookFileViolation(webhook, list, { env: { EMPTY: '' }, field })
      readWebhookFiles([file], {}, { check })
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  const none = join(path, 'none')
  const rows: readonly (readonly [string, Record<string, unknown>, string])[] = [
    [
      'tls_config.ca_bundle_path',
      { tls_config: { ca_bundle_path: none } },
      `the file ${none} cannot be read`,
    ],
    ['caBundlePath', { caBundlePath: none }, `the file ${none} cannot be read`],
    [
      'tls_config.ca_bundle_path',
      { tls_config: { ca_bundle_path: empty } },
      `the file ${empty} contains no PEM`,
    ],
    [
      'tls_config.client_cert_path',
      { tls_config: { client_cert_path: none, client_key_path: none } },
      `the file ${none} cannot be read`,
    ],
    ['hmac_secret_ref', { hmac_secret_ref: none }, `the secret file ${none} cannot be read`],
    ['hmac_secret_ref', { hmac_secret_ref: empty }, `the secret file ${empty} is empty`],
    ['hmacSecretPath', { hmacSecretPath: empty }, `the secret file ${empty} is empty`],
    ['hmacSecretEnv', { hmacSecretEnv: 'EMPTY' }, 'the variable EMPTY is not set'],
  ]
  for (const [member, more, why] of rows)
    t.match(saidOf(more), `${file}: invalid configuration:\n  - validating[0].${member}: ${why}`)
})
