/** Webhooks in manifests: admission, warnings, and how the runtime reads the file that the hooks write. */
import t from 'tap'
import { webhookViolations, webhookWarnings } from '../../hooks/kinds/mcpwebhookconfig/index.ts'
import { PodNeeds } from '../../hooks/runtime-config/needs.ts'
import { webhooksPart } from '../../hooks/runtime-config/webhooks.ts'
import {
  type MCPWebhookConfig,
  validateManifest,
  validateRuntime,
  withDefaults,
} from '../../schemas/index.ts'
import { webhookConfig } from './resources.ts'

const url = 'https://hook.example.com'
const ref = { name: 's', key: 'k' }
const config = (spec: object) => ({
  apiVersion: 'gatehouse.dev/v1beta1' as const,
  kind: 'MCPWebhookConfig' as const,
  metadata: { name: 'w', namespace: 'team' },
  spec,
})
const one = (more: object) => config({ validating: [{ name: 'v', url, ...more }] })
const problems = (document: object): string[] =>
  validateManifest(document).map(({ path, message }) => `${path} ${message}`)

t.test('invalid settings are rejected, naming the field', async (t) => {
  const wrong: readonly (readonly [object, RegExp])[] = [
    [one({ url: 'http://hook.example.com' }), /url must be https/],
    [one({ url: 'https://u:p@hook.example.com' }), /url/],
    [one({ url: 'https://169.254.169.254' }), /never allowed/],
    [one({ timeout: '500ms' }), /timeout must be from 1s to 30s/],
    [one({ timeout: '31s' }), /timeout must be from 1s to 30s/],
    [one({ failurePolicy: 'open' }), /failurePolicy/],
    [one({ phase: 'both' }), /phase/],
    [one({ name: 'Upper' }), /name/],
    [one({ match: { methods: ['tools/list'] } }), /methods/],
    [one({ match: { tools: [] } }), /tools/],
    [one({ tlsConfig: { clientCertSecretRef: ref } }), /must be set together/],
    [one({ tlsConfig: { insecureSkipVerify: true, caSecretRef: ref } }), /cannot be combined with/],
    [
      config({
        validating: [
          { name: 'v', url },
          { name: 'v', url },
        ],
      }),
      /validating/,
    ],
    [config({ validating: [{ name: 'v', url }], mutating: [{ name: 'v', url }] }), /must not appear in both/],
  ]
  for (const [document, message] of wrong) t.match(problems(document).join('\n'), message)
  t.same(problems(one({ url: 'http://hook.example.com', tlsConfig: { insecureSkipVerify: true } })), [])
  const empty = withDefaults(config({}))
  t.match(webhookViolations(empty), [{ path: 'spec', message: /at least one webhook/ }])
})

t.test('settings that allow a call to bypass a webhook cause warnings', async (t) => {
  const lax = withDefaults(one({ failurePolicy: 'ignore', tlsConfig: { insecureSkipVerify: true } }))
  t.match(webhookWarnings(lax), [/insecureSkipVerify/, /failurePolicy ignore/])
  t.same(webhookWarnings(withDefaults(one({}))), [])
})

t.test('the runtime accepts the file that the hooks write', async (t) => {
  const needs = new PodNeeds()
  const shared = withDefaults(webhookConfig() as never) as MCPWebhookConfig
  const webhooks = webhooksPart(shared, needs)
  t.match(webhooks, {
    mutating: [{ name: 'mask', hmacSecretPath: '/config/webhooks/mask/hmac/hmac', failurePolicy: 'fail' }],
    validating: [
      {
        name: 'dlp',
        caBundlePath: '/config/webhooks/dlp/ca/ca',
        clientKeyPath: '/config/webhooks/dlp/key/key',
      },
    ],
  })
  const file = {
    name: 'x',
    groupRef: 'g',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: { conflictResolution: 'prefix' },
    webhooks,
  }
  t.same(validateRuntime('vmcp', file).violations, [])
})
