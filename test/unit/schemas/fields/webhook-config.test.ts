/** MCPWebhookConfig: every field, default, bound and rule. */
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { checkTables } from '../tables/check.ts'
import { absent, booleanRow, document, type Row, secretRef, secretRows, type Table } from '../tables/table.ts'

proves('2.shape.SecretRef')

const hook = { name: 'check', url: 'https://hook.example/check' }
const at = 'spec.validating[0]'

const lists = (list: string, other: string): readonly Row[] => [
  {
    id: '',
    at: `spec.${list}`,
    good: [absent, [], [{ ...hook, name: 'other' }]],
    bad: [{}, ['x'], [{}]],
    failure: '*',
  },
  {
    id: '',
    at: `spec.${list}`,
    bad: [
      [
        { ...hook, name: 'a' },
        { ...hook, name: 'a' },
      ],
    ],
    failure: '*',
  },
  {
    id: '',
    at: `spec.${list}`,
    bad: [Array.from({ length: 17 }, (_, i) => ({ ...hook, name: `a${i}` }))],
    failure: '*',
  },
  { id: '', at: `spec.${other}[0].name`, required: true, good: ['a', 'a-1'], bad: ['', 'A', 'a_b', '-a'] },
]

const webhooks: Table = {
  name: 'MCPWebhookConfig',
  base: document('MCPWebhookConfig', { mutating: [{ ...hook, name: 'mask' }], validating: [hook] }),
  rows: [
    ...lists('mutating', 'validating'),
    ...lists('validating', 'mutating'),
    { id: '', at: 'spec.validating', bad: [[{ ...hook, name: 'mask' }]], failure: '*' },
    {
      id: '',
      at: `${at}.url`,
      required: true,
      good: ['https://hook.example', 'https://hook.example:8443/a/b'],
      bad: [
        '',
        'hook',
        'ftp://hook',
        'http://hook',
        'https://a:b@hook',
        'https://hook/?a=b',
        'https://hook/#a',
      ],
    },
    {
      id: '',
      at: `${at}.timeout`,
      default: '10s',
      good: ['1s', '30s', '1500ms'],
      bad: ['', '0s', '999ms', '31s', 10],
      failure: '*',
    },
    { id: '', at: `${at}.failurePolicy`, default: 'fail', good: ['ignore'], bad: ['', 'Fail', 'open'] },
    { id: '', at: `${at}.phase`, default: 'request', good: ['response'], bad: ['both', ''] },
    { id: '', at: `${at}.mode`, default: 'enforce', good: ['audit'], bad: ['off', ''] },
    {
      id: '',
      at: `${at}.match`,
      good: [absent, {}, { methods: ['tools/call'], backends: ['a'], tools: ['b'] }],
      bad: [{ methods: [] }, { methods: ['tools/list'] }, { backends: [''] }, { tools: [] }, { tool: ['a'] }],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.tlsConfig`,
      good: [absent, {}, { clientCertSecretRef: secretRef, clientKeySecretRef: secretRef }],
      bad: [
        { clientCertSecretRef: secretRef },
        { clientKeySecretRef: secretRef },
        { insecureSkipVerify: true, caSecretRef: secretRef },
        { caBundlePath: '/ca.pem' },
      ],
      failure: '*',
    },
    { id: '', at: `${at}.hmacSecretRef`, good: [absent, secretRef], bad: ['x', {}], failure: '*' },
    { id: '', at: `${at}.hmacSecretPath`, bad: ['/hmac'], failure: '*' },
  ],
}

const references: Table = {
  name: 'MCPWebhookConfig references',
  base: document('MCPWebhookConfig', {
    validating: [{ ...hook, tlsConfig: { caSecretRef: secretRef }, hmacSecretRef: secretRef }],
  }),
  rows: [...secretRows(`${at}.tlsConfig.caSecretRef`), ...secretRows(`${at}.hmacSecretRef`)],
}

/** Without the other members of `tlsConfig`, which it excludes. It also permits plain http. */
const insecure: Table = {
  name: 'MCPWebhookConfig without verification',
  base: document('MCPWebhookConfig', { validating: [{ ...hook, tlsConfig: { insecureSkipVerify: true } }] }),
  rows: [
    booleanRow('', `${at}.tlsConfig.insecureSkipVerify`, false),
    { id: '', at: `${at}.url`, good: ['http://hook.example', 'https://hook.example'], bad: ['ws://hook'] },
  ],
}

await checkTables(t, [webhooks, references, insecure])
