/** MCPExternalAuthConfig: type clientCredentials, and the client authentication of token exchanges. */
import { companions, externalAuth } from './external-auth.ts'
import { absent, document, secretRef, secretRows, type Table } from './table.ts'

const keyRef = { name: 'tokens', key: 'key.pem' }
const algorithms = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA']
const longText = 'a'.repeat(2049)
const own = 'spec.clientCredentials'

const clientCredentials: readonly Table[] = [
  {
    name: 'clientCredentials',
    base: externalAuth('clientCredentials'),
    rows: [
      { id: '', at: `${own}.issuer`, good: ['http://localhost:80/x'], bad: ['http://idp.example.com', 'x'] },
      { id: '', at: `${own}.issuer`, bad: [absent], failure: own },
      { id: '', at: `${own}.tokenUrl`, bad: ['https://idp.example.com/token'], failure: own },
      {
        id: '',
        at: `${own}.clientId`,
        required: true,
        good: ['a'.repeat(1024)],
        bad: ['', 'a'.repeat(1025)],
      },
      { id: '', at: `${own}.privateKeyRef`, bad: [absent], failure: '*' },
      ...secretRows(`${own}.privateKeyRef`),
      { id: '', at: `${own}.clientSecretRef`, bad: [secretRef], failure: own },
      { id: '', at: `${own}.serviceAccountToken`, bad: [{}], failure: own },
      { id: '', at: `${own}.signingAlg`, good: [absent, ...algorithms], bad: ['HS256', 'none', ''] },
      {
        id: '',
        at: `${own}.assertionAudience`,
        good: [absent, 'https://idp.example.com/token'],
        bad: ['', longText],
      },
      { id: '', at: `${own}.scopes`, good: [absent, []], bad: [['a b']], failure: '*' },
      { id: '', at: `${own}.resource`, good: [absent, 'https://crm.example.com'], bad: ['', longText] },
      { id: '', at: `${own}.audience`, good: [absent, 'crm'], bad: ['', longText] },
      { id: '', at: `${own}.clientSecret`, bad: ['x'] },
    ],
  },
  {
    name: 'clientCredentials with a ServiceAccount token',
    base: document('MCPExternalAuthConfig', {
      type: 'clientCredentials',
      clientCredentials: {
        tokenUrl: 'https://idp.example.com/token',
        clientId: 'gateway',
        serviceAccountToken: { audience: 'https://idp.example.com' },
      },
    }),
    rows: [
      { id: '', at: `${own}.tokenUrl`, good: ['http://127.0.0.1/token'], bad: ['http://idp.example.com'] },
      { id: '', at: `${own}.serviceAccountToken.audience`, good: [absent], bad: ['', longText] },
      {
        id: '',
        at: `${own}.serviceAccountToken.expirationSeconds`,
        default: 3600,
        good: [600, 86_400],
        bad: [599, 86_401, '3600'],
      },
      { id: '', at: `${own}.signingAlg`, bad: ['ES256'] },
      { id: '', at: `${own}.assertionAudience`, bad: ['https://idp.example.com'] },
    ],
  },
]

/** Rows of `clientAuth`, or of one of the two clients of type xaa. */
function clientAuthRows(auth: string, id: string, secret: string): Table['rows'] {
  const methods = ['clientSecretBasic', 'clientSecretPost']
  const key = { method: 'privateKeyJwt', privateKeyRef: keyRef }
  return [
    { id: '', at: auth, good: [absent, ...methods.map((method) => ({ method }))] },
    { id: '', at: auth, bad: [key, { method: 'federated', serviceAccountToken: {} }], failure: secret },
    { id: '', at: auth, bad: [{}, { method: 'none' }], failure: '*' },
    { id: '', at: id, bad: [absent], failure: '*' },
    { id: '', at: secret, bad: [absent] },
    ...(
      [
        ['privateKeyRef', { method: 'privateKeyJwt' }],
        ['privateKeyRef', { method: 'clientSecretPost', privateKeyRef: keyRef }],
        ['serviceAccountToken', { method: 'federated' }],
        ['serviceAccountToken', { method: 'clientSecretBasic', serviceAccountToken: {} }],
        ['signingAlg', { method: 'clientSecretBasic', signingAlg: 'ES256' }],
        ['assertionAudience', { method: 'clientSecretBasic', assertionAudience: 'x' }],
      ] as const
    ).map(([field, value]) => ({
      id: '',
      at: auth,
      bad: [value],
      failure: field.endsWith('Ref') || field.endsWith('Token') ? '*' : `${auth}.${field}`,
    })),
  ]
}

const basic = { method: 'clientSecretBasic' }
const upstream = 'spec.embeddedAuthServer.upstreamProviders[0]'
const gateway = { clientId: 'gateway', clientSecretRef: secretRef }
const upstreams = {
  oidc: { issuerUrl: 'https://idp.example.com', ...gateway },
  oauth2: {
    authorizationEndpoint: 'https://idp.example.com/authorize',
    tokenEndpoint: 'https://idp.example.com/token',
    ...gateway,
  },
}
const clientAuth: readonly Table[] = [
  {
    name: 'tokenExchange.clientAuth',
    base: document('MCPExternalAuthConfig', {
      type: 'tokenExchange',
      tokenExchange: {
        ...companions['tokenExchange'],
        clientId: 'gateway',
        clientSecretRef: secretRef,
        clientAuth: basic,
      },
    }),
    rows: clientAuthRows(
      'spec.tokenExchange.clientAuth',
      'spec.tokenExchange.clientId',
      'spec.tokenExchange.clientSecretRef',
    ),
  },
  ...(['oidc', 'oauth2'] as const).map((type) => ({
    name: `upstreamProviders ${type}Config.clientAuth`,
    base: document('MCPExternalAuthConfig', {
      type: 'embeddedAuthServer',
      embeddedAuthServer: {
        issuer: 'https://auth.example.com',
        upstreamProviders: [
          { name: 'corp', type, [`${type}Config`]: { ...upstreams[type], clientAuth: basic } },
        ],
      },
    }),
    rows: clientAuthRows(
      `${upstream}.${type}Config.clientAuth`,
      `${upstream}.${type}Config.clientId`,
      `${upstream}.${type}Config.clientSecretRef`,
    ),
  })),
  {
    name: 'upstreamProviders with a certificate or a registration',
    base: document('MCPExternalAuthConfig', {
      type: 'embeddedAuthServer',
      embeddedAuthServer: {
        issuer: 'https://auth.example.com',
        upstreamProviders: [
          {
            name: 'corp',
            type: 'oauth2',
            oauth2Config: {
              authorizationEndpoint: 'https://idp.example.com/authorize',
              tokenEndpoint: 'https://idp.example.com/token',
              dcrConfig: { discoveryUrl: 'https://idp.example.com' },
            },
            clientCertificateSecretRef: { name: 'client' },
          },
        ],
      },
    }),
    rows: [
      {
        id: '',
        at: `${upstream}.oauth2Config.clientAuth`,
        bad: [{ method: 'federated', serviceAccountToken: {} }],
      },
      {
        id: '',
        at: `${upstream}.oauth2Config.tokenEndpoint`,
        bad: ['http://idp.example.com/token'],
        failure: `${upstream}.clientCertificateSecretRef`,
      },
    ],
  },
  ...['idp', 'target'].map((peer) => ({
    name: `xaa.${peer}ClientAuth`,
    base: document('MCPExternalAuthConfig', {
      type: 'xaa',
      xaa: {
        ...companions['xaa'],
        [`${peer}ClientId`]: 'gateway',
        [`${peer}ClientSecretRef`]: secretRef,
        [`${peer}ClientAuth`]: basic,
      },
    }),
    rows: clientAuthRows(
      `spec.xaa.${peer}ClientAuth`,
      `spec.xaa.${peer}ClientId`,
      `spec.xaa.${peer}ClientSecretRef`,
    ),
  })),
  {
    name: 'clientAuth with a key',
    base: document('MCPExternalAuthConfig', {
      type: 'obo',
      obo: { ...companions['obo'], clientAuth: { method: 'privateKeyJwt', privateKeyRef: keyRef } },
    }),
    rows: [
      ...secretRows('spec.obo.clientAuth.privateKeyRef'),
      { id: '', at: 'spec.obo.clientAuth.signingAlg', good: [absent, ...algorithms], bad: ['HS256', 'none'] },
      { id: '', at: 'spec.obo.clientAuth.assertionAudience', good: [absent, 'x'], bad: ['', longText] },
      { id: '', at: 'spec.obo.clientSecretRef', good: [secretRef] },
    ],
  },
]

export const clientAuthTables: readonly Table[] = [...clientCredentials, ...clientAuth]
