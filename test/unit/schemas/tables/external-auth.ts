/** docs/reference/specification/external-auth.md: MCPExternalAuthConfig without the embedded authorization server. */
import { examplesOf } from '../../../helpers/hooks/examples.ts'
import { requirements } from '../../../requirements/index.ts'
import {
  absent,
  booleanRow,
  type Doc,
  document,
  notName,
  notProvider,
  notString,
  secretRef,
  secretRows,
  type Table,
} from './table.ts'

const requirementIds = new Set(requirements.map(({ id }) => id))
const arn = 'arn:aws:iam::123456789012:role/team/app'

/** Type -> its settings, from the examples of the schema; unauthenticated has none. */
export const companions: { readonly [type: string]: Doc } = Object.fromEntries(
  Object.values(
    examplesOf<{ readonly type: string; readonly [type: string]: Doc | string }>('MCPExternalAuthConfig'),
  ).flatMap((spec) => {
    const settings = spec[spec.type]
    return typeof settings === 'object' ? [[spec.type, settings]] : []
  }),
)

export function externalAuth(type: string): Doc {
  const companion = companions[type]
  return document('MCPExternalAuthConfig', companion ? { type, [type]: companion } : { type })
}

/** Types that the specification does not contain have no requirement. */
function idOf(type: string): string {
  const id = `2.spec.${type}`
  return requirementIds.has(id) ? id : ''
}

const types: Table = {
  name: 'MCPExternalAuthConfig type',
  base: externalAuth('unauthenticated'),
  rows: [
    { id: '2.spec.type', at: 'spec.type', required: true, bad: ['', 'TokenExchange', 'cloud_sts', 'none'] },
    { id: '2.spec.type', at: 'spec.type', bad: Object.keys(companions), failure: '*' },
    // Each settings object is valid with its own type only.
    ...Object.entries(companions).map(([type, companion]) => ({
      id: idOf(type),
      at: `spec.${type}`,
      bad: [companion],
    })),
    { id: '2.spec.unauthenticated', at: 'spec.type', good: ['unauthenticated'] },
  ],
}

/** Each type requires its settings object. */
const pairs: readonly Table[] = Object.keys(companions).map((type) => ({
  name: `MCPExternalAuthConfig of type ${type}`,
  base: externalAuth(type),
  rows: [
    { id: idOf(type), at: `spec.${type}`, required: true },
    ...Object.entries(companions)
      .filter(([other]) => other !== type)
      .map(([other, companion]) => ({
        id: idOf(other),
        at: `spec.${other}`,
        bad: [companion],
      })),
  ],
}))

const cloudSts: Table = {
  name: 'cloudSts',
  base: externalAuth('cloudSts'),
  rows: [
    {
      id: '2.cloudSts.region',
      at: 'spec.cloudSts.region',
      required: true,
      good: ['us-east-1', 'us-gov-west-1', 'ap-southeast-12'],
      bad: ['', 'eu', 'EU-west-1', 'eu-west', 'eu-west-1a', 'eu1-west-1', 1],
    },
    {
      id: '2.cloudSts.fallbackRoleArn',
      at: 'spec.cloudSts.fallbackRoleArn',
      good: [arn, 'arn:aws-cn:iam::123456789012:role/a+=,.@-_/b', 'arn:aws-us-gov:iam::123456789012:role/x'],
      bad: [
        '',
        'arn:aws:iam::12345:role/x',
        'arn:aws-eu:iam::123456789012:role/x',
        'arn:aws:iam::123456789012:user/x',
      ],
    },
    {
      id: '2.cloudSts.rule.role',
      at: 'spec.cloudSts.fallbackRoleArn',
      bad: [absent],
      failure: 'spec.cloudSts',
    },
    { id: '', at: 'spec.cloudSts.roleMappings', good: [absent, [{ roleArn: arn, claim: 'admins' }]] },
    { id: '', at: 'spec.cloudSts.roleClaim', default: 'groups', good: ['roles'], bad: notString },
    { id: '', at: 'spec.cloudSts.service', default: 'aws-mcp', good: ['other'], bad: notString },
    {
      id: '2.limit.cloudSts.sessionDuration',
      at: 'spec.cloudSts.sessionDuration',
      default: 3600,
      good: [900, 43200],
      bad: [899, 43201, '900', 900.5],
    },
    { id: '', at: 'spec.cloudSts.sessionNameClaim', default: 'sub', good: ['email'], bad: notString },
    { id: '', at: 'spec.cloudSts.subjectProviderName', good: [absent, '', 'corp'], bad: notString },
    { id: '', at: 'spec.cloudSts.unknown', bad: ['x'] },
  ],
}

const mapping = { roleArn: arn, claim: 'admins' }
const roleMappings: Table = {
  name: 'cloudSts.roleMappings',
  base: document('MCPExternalAuthConfig', {
    type: 'cloudSts',
    cloudSts: { region: 'eu-west-1', roleMappings: [mapping] },
  }),
  rows: [
    {
      id: '2.cloudSts.rule.role',
      at: 'spec.cloudSts.roleMappings',
      bad: [absent, []],
      failure: 'spec.cloudSts',
    },
    {
      id: '2.cloudSts.roleMappings.roleArn',
      at: 'spec.cloudSts.roleMappings[0].roleArn',
      required: true,
      bad: ['', 'role', 'arn:aws:iam::123456789012:role/'],
    },
    { id: '', at: 'spec.cloudSts.roleMappings[0].claim', bad: [''] },
    {
      id: '2.error.exclusive.claim-matcher',
      at: 'spec.cloudSts.roleMappings[0].matcher',
      bad: ["'x' in claims.groups"],
      failure: 'spec.cloudSts.roleMappings[0]',
    },
    {
      id: '',
      at: 'spec.cloudSts.roleMappings[0].claim',
      bad: [absent],
      failure: 'spec.cloudSts.roleMappings[0]',
    },
    {
      id: '2.limit.roleMappings.priority',
      at: 'spec.cloudSts.roleMappings[0].priority',
      good: [absent, 0, 7],
      bad: [-1, '1', 1.5],
    },
    {
      id: '',
      at: 'spec.cloudSts.roleMappings[0]',
      good: [{ roleArn: arn, matcher: "claims.sub.startsWith('a')" }],
      bad: [{ roleArn: arn, matcher: '' }],
      failure: '*',
    },
  ],
}

const simple: readonly Table[] = [
  {
    name: 'bearerToken',
    base: externalAuth('bearerToken'),
    rows: [
      { id: '', at: 'spec.bearerToken.tokenSecretRef', required: true },
      ...secretRows('spec.bearerToken.tokenSecretRef'),
    ],
  },
  {
    name: 'headerInjection',
    base: externalAuth('headerInjection'),
    rows: [
      {
        id: '2.headerInjection.headerName',
        at: 'spec.headerInjection.headerName',
        required: true,
        good: ['Authorization', 'x-y'],
        bad: ['', 'a b', 'a:b', 'ü', 1],
      },
      { id: '', at: 'spec.headerInjection.valueSecretRef', required: true },
      ...secretRows('spec.headerInjection.valueSecretRef'),
    ],
  },
  {
    name: 'upstreamInject',
    base: externalAuth('upstreamInject'),
    rows: [{ id: '', at: 'spec.upstreamInject.providerName', required: true, good: ['x'], bad: ['', 1] }],
  },
]

const urn = 'urn:ietf:params:oauth:token-type:'
const tokenExchange: Table = {
  name: 'tokenExchange',
  base: externalAuth('tokenExchange'),
  rows: [
    { id: '', at: 'spec.tokenExchange.tokenUrl', required: true, bad: ['', 'idp/token', 'ftp://x/y'] },
    { id: '', at: 'spec.tokenExchange.audience', required: true, bad: ['', 1] },
    { id: '', at: 'spec.tokenExchange.clientId', good: [absent, 'id'], bad: notString },
    {
      id: '',
      at: 'spec.tokenExchange.clientSecretRef',
      good: [absent, secretRef],
      bad: ['x', {}],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.tokenExchange.scopes',
      good: [absent, [], ['a', 'b']],
      bad: ['a', ['a b'], ['"']],
      failure: '*',
    },
    { id: '', at: 'spec.tokenExchange.externalTokenHeaderName', good: [absent, '', 'X-Token'], bad: ['a b'] },
    { id: '', at: 'spec.tokenExchange.subjectProviderName', good: [absent, '', 'corp'], bad: notString },
    {
      id: '',
      at: 'spec.tokenExchange.subjectTokenType',
      good: [
        absent,
        '',
        'access_token',
        'id_token',
        'jwt',
        `${urn}access_token`,
        `${urn}id_token`,
        `${urn}jwt`,
      ],
      bad: ['saml', `${urn}refresh_token`, 'ACCESS_TOKEN'],
    },
  ],
}

const obo: Table = {
  name: 'obo',
  base: externalAuth('obo'),
  rows: [
    // No field is required by the schema; reconciliation checks them.
    { id: '2.obo.rule.optional', at: 'spec.obo', good: [{}] },
    { id: '2.version.obo-optional', at: 'spec.obo', good: [{ tenantId: 'example.com' }] },
    { id: '', at: 'spec.obo.audience', good: [absent, '', 'api://x'], bad: notString },
    {
      id: '',
      at: 'spec.obo.scopes',
      good: [absent, [], ['a']],
      bad: ['a', [1], Array.from({ length: 21 }, (_, i) => `s${i}`)],
      failure: '*',
    },
    {
      id: '2.obo.authority',
      at: 'spec.obo.authority',
      good: [absent, 'https://login.example.com', 'https://login.example.com/path/x'],
      bad: [
        'http://login.example.com',
        'https://user@login.example.com',
        'https://login.example.com/',
        'https://login.example.com?x=1',
        'https://login.example.com#x',
      ],
    },
    {
      id: '2.obo.tenantId',
      at: 'spec.obo.tenantId',
      good: [absent, '0a1b2c3d-0000-1111-2222-333344445555', 'example.com', 'a.b-c.example.org'],
      bad: [
        'common',
        'organizations',
        'consumers',
        '',
        'example.c',
        'example.',
        '0a1b2c3d-0000-1111-2222-33334444555',
      ],
    },
    { id: '2.limit.tenantId', at: 'spec.obo.tenantId', bad: [`${'a'.repeat(250)}.com`] },
    { id: '', at: 'spec.obo.clientId', good: [absent, 'id'], bad: notString },
    { id: '', at: 'spec.obo.clientSecretRef', good: [absent, secretRef] },
    // The schema accepts a negative value.
    { id: '', at: 'spec.obo.cacheSkew', good: [absent, '30s', '-30s'], bad: [30] },
    { id: '', at: 'spec.obo.subjectTokenProviderName', good: [absent, 'corp', 'a1'], bad: notProvider },
  ],
}

const xaa: Table = {
  name: 'xaa',
  base: externalAuth('xaa'),
  rows: [
    { id: '', at: 'spec.xaa.idpTokenUrl', required: true, bad: ['http://idp.example.com/token'] },
    { id: '', at: 'spec.xaa.targetTokenUrl', required: true, bad: ['http://target.example.com/token', 'x'] },
    { id: '', at: 'spec.xaa.targetAudience', required: true, bad: [''] },
    booleanRow('', 'spec.xaa.insecureTargetTokenUrl', false),
    { id: '', at: 'spec.xaa.idpClientSecretRef', bad: [secretRef], failure: 'spec.xaa.idpClientId' },
    { id: '', at: 'spec.xaa.targetClientSecretRef', bad: [secretRef], failure: 'spec.xaa.targetClientId' },
    {
      id: '',
      at: 'spec.xaa.subjectTokenType',
      good: [absent, `${urn}id_token`],
      bad: [`${urn}access_token`, 'id_token'],
    },
  ],
}

const metadata: Table = {
  name: 'every manifest',
  base: externalAuth('unauthenticated'),
  rows: [
    { id: '', at: 'metadata.name', required: true, good: ['a', 'a.b-c'], bad: notName },
    { id: '', at: 'spec', required: true, bad: [[], 'x'] },
    { id: '', at: 'extra', bad: ['x'] },
  ],
}

export const externalAuthTables: readonly Table[] = [
  types,
  ...pairs,
  cloudSts,
  roleMappings,
  ...simple,
  tokenExchange,
  obo,
  xaa,
  metadata,
]
