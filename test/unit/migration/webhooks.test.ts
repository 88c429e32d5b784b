/** ToolHive webhooks: objects, files of --webhook-config, and lists in run configurations. */
import t, { type Test } from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { untyped } from '../../helpers/untyped.ts'
import { type Migration, migrate } from '../../../runtime/tools/migration/convert.ts'

type Doc = Readonly<Record<string, unknown>>

const url = 'https://hook.example/check'

function convert(docs: readonly Doc[], file = 'hooks.yaml'): Migration {
  return migrate(
    docs.map((doc) => ({ doc, file, lineOf: () => 1 })),
    { violationsOf: (manifest) => validateResource(manifest).violations, tools: new Map() },
  )
}

const written = ({ files, secrets }: Migration): readonly Doc[] => [...[...files.values()].flat(), ...secrets]
const one = (migration: Migration, kind: string) =>
  untyped(written(migration).find((doc) => doc['kind'] === kind))

/** Checks that every written object passes admission. */
function admitted(t: Test, migration: Migration): void {
  for (const doc of written(migration).filter(({ kind }) => kind !== 'Secret'))
    t.same(validateResource(doc).violations, [], String(doc['kind']))
}

t.test('an MCPWebhookConfig and the MCPServer that names it', async (t) => {
  const secret = { name: 's', key: 'k' }
  const hook = {
    name: 'Policy_Check',
    url,
    timeout: '5s',
    failurePolicy: 'ignore',
    tlsConfig: { caSecretRef: secret },
    hmacSecretRef: secret,
  }
  const object = (kind: string, spec: unknown) => ({
    apiVersion: 'toolhive.stacklok.dev/v1alpha1',
    kind,
    metadata: { name: 'company' },
    spec,
  })
  const migration = convert([
    object('MCPWebhookConfig', { validating: [hook] }),
    object('MCPServer', {
      image: 'example/notes:1',
      transport: 'sse',
      webhookConfigRef: { name: 'company' },
    }),
  ])
  t.same(one(migration, 'MCPWebhookConfig').spec, { validating: [{ ...hook, name: 'policy-check' }] })
  t.match(one(migration, 'MCPServer').spec, { webhookConfigRef: { name: 'company' } })
  t.match(
    migration.documents.map(({ outcome }) => outcome),
    ['differs', 'converted'],
  )
  t.match(migration.documents[0]?.rows, [
    { field: 'spec.validating[0].name', effect: 'renamed', text: 'is now policy-check' },
    { field: 'spec', effect: 'differs', text: /not for lists and initialize/ },
  ])
  admitted(t, migration)
})

const theirs = {
  name: 'check',
  url,
  timeout: 5_000_000_000,
  failure_policy: 'fail',
  hmac_secret_ref: 'hmac,target=X',
  tls_config: { ca_bundle_path: '/pki/ca.crt', client_cert_path: '/pki/c', client_key_path: '/pki/k' },
}
const reference = (name: string, key: string) => ({ name, key: `check-${key}` })
const ours = (secret: string) => ({
  name: 'check',
  url,
  timeout: '5s',
  failurePolicy: 'fail',
  tlsConfig: {
    caSecretRef: reference(secret, 'ca'),
    clientCertSecretRef: reference(secret, 'client-cert'),
    clientKeySecretRef: reference(secret, 'client-key'),
  },
  hmacSecretRef: reference(secret, 'hmac'),
})
const empty = { 'check-ca': '', 'check-client-cert': '', 'check-client-key': '', 'check-hmac': '' }

t.test('a file of --webhook-config becomes an MCPWebhookConfig, with a Secret to fill in', async (t) => {
  const open = { name: 'open', url: 'http://hook.example', tls_config: { insecure_skip_verify: true } }
  const migration = convert([{ validating: [theirs], mutating: [open] }])
  t.match(one(migration, 'MCPWebhookConfig'), {
    metadata: { name: 'hooks' },
    spec: {
      validating: [ours('hooks')],
      mutating: [{ name: 'open', tlsConfig: { insecureSkipVerify: true } }],
    },
  })
  t.match(one(migration, 'Secret'), { metadata: { name: 'hooks' }, stringData: empty })
  t.equal(migration.documents[0]?.subject, 'webhooks')
  t.match(migration.documents[0]?.rows, [
    { effect: 'renamed', text: /MCPWebhookConfig hooks: refer to it in webhookConfigRef/ },
    { effect: 'differs', text: /fill in the values of Secret hooks/ },
    { effect: 'differs' },
  ])
  admitted(t, migration)
})

t.test('webhooks of a run configuration apply to its server', async (t) => {
  const run = { schema_version: 'v0.1.0', name: 'notes', transport: 'sse', image: 'example/notes:1' }
  const migration = convert([
    {
      ...run,
      validating_webhooks: [theirs],
      mutating_webhooks: [{ name: 'mask', url, failure_policy: 'ignore', timeout: 0, tls_config: null }],
      middleware_configs: [{ type: 'validating-webhook' }, { type: 'mutating-webhook' }],
    },
  ])
  t.match(one(migration, 'MCPServer').spec, { webhookConfigRef: { name: 'notes-webhooks' } })
  t.same(one(migration, 'MCPWebhookConfig').spec, {
    mutating: [{ name: 'mask', url, failurePolicy: 'ignore' }],
    validating: [ours('notes-webhooks')],
  })
  t.match(one(migration, 'Secret').stringData, empty)
  t.equal(migration.documents[0]?.outcome, 'differs')
  admitted(t, migration)

  const refused = {
    'validating_webhooks[0].url': { validating_webhooks: [{ ...theirs, url: `${url}?a=b` }] },
    'mutating_webhooks[0].tlsConfig.ca': { mutating_webhooks: [{ ...theirs, tls_config: { ca: 'x' } }] },
    validating_webhooks: {
      validating_webhooks: [theirs],
      mutating_webhooks: Array.from({ length: 17 }, (_, i) => ({ name: `w${i}`, url })),
    },
    'middleware_configs[0]': { middleware_configs: [{ type: 'validating-webhook' }] },
  }
  for (const [field, fields] of Object.entries(refused)) {
    const { documents, files } = convert([{ ...run, ...fields }])
    t.equal(documents[0]?.outcome, 'not converted', field)
    t.equal(files.size, 0)
  }
})

t.test('webhooks that are invalid in Gatehouse are not written', async (t) => {
  const rows: readonly (readonly [Doc, string])[] = [
    [{ validating: [{ ...theirs, url: `${url}?a=b` }] }, 'spec.validating[0].url'],
    [{ validating: [{ ...theirs, failure_policy: 'open' }] }, 'spec.validating[0].failurePolicy'],
    [{ validating: [{ ...theirs, timeout: '1m' }] }, 'spec.validating[0].timeout'],
    [{ validating: [theirs], mutating: [theirs] }, 'spec.validating'],
    [{ validating: [] }, 'spec'],
  ]
  for (const [doc, field] of rows) {
    const { documents, files } = convert([doc])
    t.match(
      documents[0]?.rows.filter(({ effect }) => effect === 'refused'),
      [{ field }],
      field,
    )
    t.equal(files.size, 0)
  }
})
