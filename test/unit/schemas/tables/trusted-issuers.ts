/** Trusted issuers of the embedded authorization server, and the subjects that get tokens. */
import { externalAuth } from './external-auth.ts'
import { absent, booleanRow, type Doc, document, type Json, notString, type Table } from './table.ts'

const at = 'spec.embeddedAuthServer'
const issuer = `${at}.trustedIssuers[0]`
const grant = `${at}.inboundGrants.jwtBearer`
const policy = `${grant}.issuerPolicies[0]`
const binding = `${policy}.subjectBindings[0]`
const scopes = ['tools:read']

function server(trusted: Doc, policyMore: Doc = {}, bindingMore: Doc = { subject: 'job' }): Doc {
  return document('MCPExternalAuthConfig', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      trustedIssuers: [{ name: 'ci', issuerUrl: 'https://ci.example.com', ...trusted }],
      inboundGrants: {
        jwtBearer: {
          issuerPolicies: [{ issuerRef: 'ci', subjectBindings: [{ scopes, ...bindingMore }], ...policyMore }],
        },
      },
    },
  })
}

function numbered(count: number, make: (index: number) => Json): Json {
  return Array.from({ length: count }, (_, index) => make(index))
}

const notPlatformUrl: readonly Json[] = ['', 'ci.example.com', 'http://ci.example.com', 'ftp://ci', 1]
const loopback: readonly Json[] = ['http://localhost:8080/x', 'http://127.0.0.1', 'http://[::1]:80']

const issuers: Table = {
  name: 'trustedIssuers',
  base: server({}),
  rows: [
    {
      id: '',
      at: `${at}.trustedIssuers`,
      good: [numbered(20, (i) => ({ name: `i${i}`, issuerUrl: `https://i${i}.example.com` }))],
      bad: [numbered(21, (i) => ({ name: `i${i}`, issuerUrl: `https://i${i}.example.com` })), {}],
    },
    {
      id: '',
      at: `${at}.trustedIssuers[1]`,
      bad: [{ name: 'ci', issuerUrl: 'https://other.example.com' }],
    },
    { id: '', at: `${issuer}.name`, required: true, good: ['a', 'a-1'], bad: ['', 'A', '-a', 1] },
    {
      id: '',
      at: `${issuer}.issuerUrl`,
      required: true,
      good: ['https://a.example.com/', 'https://a.example.com/x', ...loopback],
      bad: notPlatformUrl,
    },
    {
      id: '',
      at: `${issuer}.jwksUrl`,
      good: [absent, 'https://10.0.0.7/keys', ...loopback],
      bad: notPlatformUrl,
    },
    {
      id: '',
      at: `${issuer}.preset`,
      good: [absent, 'kubernetes', 'github', 'gitlab'],
      bad: ['', 'azure', 1],
    },
    { id: '', at: `${issuer}.allowPrivateIPs`, bad: [true], failure: `${issuer}.jwksUrl` },
    { id: '', at: `${issuer}.caBundleRef`, good: [{ configMapRef: { name: 'ca' } }], bad: ['ca'] },
    { id: '', at: `${issuer}.insecureAllowHTTP`, bad: [true] },
  ],
}

const privateIssuer: Table = {
  name: 'a trusted issuer with a private address',
  base: server({ jwksUrl: 'https://10.0.0.7/keys' }),
  rows: [booleanRow('', `${issuer}.allowPrivateIPs`, false)],
}

const exchange = `${at}.inboundGrants.tokenExchange.issuerPolicies`
const exchangePolicy = `${exchange}[0]`

function exchangeServer(more: Doc = {}): Doc {
  return document('MCPExternalAuthConfig', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      trustedIssuers: [{ name: 'idp', issuerUrl: 'https://idp.example.com' }],
      clients: [{ clientId: 'agent', jwksUri: 'https://agent.example.com/keys', scopes }],
      inboundGrants: { tokenExchange: { issuerPolicies: [exchangeRule('idp', more)] } },
    },
  })
}

function exchangeRule(issuerRef: string, more: Doc = {}): Doc {
  const rule = {
    expectedAudience: 'api://agents',
    allowedActors: ['chat'],
    allowedDelegateClients: ['agent'],
  }
  return { issuerRef, ...rule, ...more }
}

const exchanged: Table = {
  name: 'inboundGrants.tokenExchange.issuerPolicies',
  base: exchangeServer({ actorMatcher: 'true' }),
  rows: [
    {
      id: '',
      at: exchange,
      good: [numbered(20, (i) => exchangeRule(`i${i}`))],
      bad: [[], numbered(21, (i) => exchangeRule(`i${i}`)), {}],
    },
    { id: '', at: `${exchange}[1]`, bad: [exchangeRule('idp')] },
    { id: '', at: `${exchangePolicy}.issuerRef`, required: true, bad: ['', 'IDP', 1] },
    {
      id: '',
      at: `${exchangePolicy}.expectedAudience`,
      required: true,
      good: ['a', 'x'.repeat(2048)],
      bad: ['', 'x'.repeat(2049), 1],
    },
    {
      id: '',
      at: `${exchangePolicy}.actorClaim`,
      default: 'azp',
      good: ['appid', 'cid', 'https://idp.example.com/client', 'x'.repeat(64)],
      bad: ['', 'x'.repeat(65), 1],
    },
    {
      id: '',
      at: `${exchangePolicy}.allowedActors`,
      good: [absent, ['a'], numbered(50, (i) => `a${i}`)],
      bad: [[], 'chat', numbered(51, (i) => `a${i}`)],
    },
    {
      id: '',
      at: `${exchangePolicy}.actorMatcher`,
      good: [absent, 'x'.repeat(4096)],
      bad: ['', 'x'.repeat(4097), 1],
    },
    {
      id: '',
      at: `${exchangePolicy}.allowedDelegateClients`,
      required: true,
      good: [['*'], numbered(50, (i) => `c${i}`)],
      bad: [[], '*', ['*', 'agent'], numbered(51, (i) => `c${i}`)],
    },
    {
      id: '',
      at: `${exchangePolicy}.allowedDelegateClients`,
      bad: [[''], ['a b'], ['a*'], ['x'.repeat(129)]],
      failure: `${exchangePolicy}.allowedDelegateClients[0]`,
    },
    booleanRow('', `${exchangePolicy}.allowMayAct`, false),
  ],
}

const policies: Table = {
  name: 'inboundGrants.jwtBearer',
  base: server(
    {},
    { acceptedAudiences: ['a'], acceptedAssertionTypes: ['jwt_bearer'] },
    { subject: 'job', allowedResources: ['https://a.example'] },
  ),
  rows: [
    { id: '', at: `${at}.inboundGrants.other`, bad: [{}] },
    {
      id: '',
      at: `${grant}.issuerPolicies`,
      required: true,
      good: [numbered(20, (i) => ({ issuerRef: `i${i}`, subjectBindings: [{ subject: 'a', scopes }] }))],
      bad: [[], numbered(21, (i) => ({ issuerRef: `i${i}`, subjectBindings: [{ subject: 'a', scopes }] }))],
    },
    {
      id: '',
      at: `${grant}.issuerPolicies[1]`,
      bad: [{ issuerRef: 'ci', subjectBindings: [{ subject: 'b', scopes }] }],
    },
    { id: '', at: `${policy}.issuerRef`, required: true, bad: ['', 'CI', 1] },
    {
      id: '',
      at: `${policy}.maxAssertionAge`,
      good: [absent, '1m', '24h'],
      bad: ['59s', '24h1s', '', 'soon', 5],
    },
    {
      id: '',
      at: `${policy}.acceptedAssertionTypes`,
      default: ['jwt_bearer'],
      good: [absent, ['jwt_bearer', 'id_jag']],
      bad: [[], 'id_jag'],
    },
    { id: '', at: `${policy}.acceptedAssertionTypes[0]`, bad: ['saml', '', 1] },
    { id: '', at: `${policy}.acceptedAssertionTypes[1]`, bad: ['jwt_bearer'] },
    { id: '', at: `${policy}.replay`, default: 'once', good: ['untilExpiry'], bad: ['', 'never', true] },
    {
      id: '',
      at: `${policy}.acceptedAudiences`,
      good: [absent, ['a'], numbered(10, (i) => `a${i}`)],
      bad: [[], numbered(11, (i) => `a${i}`), 'a'],
    },
    { id: '', at: `${policy}.acceptedAudiences[0]`, good: ['x'.repeat(2048)], bad: ['', 'x'.repeat(2049)] },
    {
      id: '',
      at: `${policy}.subjectBindings`,
      good: [numbered(50, (i) => ({ subject: `s${i}`, scopes }))],
      bad: [absent, [], numbered(51, (i) => ({ subject: `s${i}`, scopes })), {}],
    },
    {
      id: '',
      at: `${binding}.subject`,
      good: ['a#b', 'x'.repeat(1024)],
      bad: ['', 'x'.repeat(1025), ...notString],
    },
    { id: '', at: `${binding}.subject`, bad: [absent], failure: binding },
    { id: '', at: `${binding}.matcher`, bad: ['true'], failure: binding },
    {
      id: '',
      at: `${binding}.allowedResources`,
      good: [absent, ['https://mcp.example.com']],
      bad: [[], numbered(11, (i) => `https://a${i}.example`)],
    },
    { id: '', at: `${binding}.allowedResources[0]`, bad: ['', 'mcp'] },
    { id: '', at: `${binding}.allowedResources[1]`, bad: ['https://a.example'] },
    { id: '', at: `${policy}.acceptedAudiences[1]`, bad: ['a'] },
    { id: '', at: `${binding}.scopes[1]`, bad: scopes },
    {
      id: '',
      at: `${binding}.scopes`,
      required: true,
      good: [numbered(10, (i) => `s${i}`)],
      bad: [[], ['openid'], ['a', 'offline_access'], numbered(11, (i) => `s${i}`)],
    },
    { id: '', at: `${binding}.scopes[0]`, good: ['x'.repeat(256)], bad: ['', 'a b', 'x'.repeat(257)] },
  ],
}

const identityAssertions: Table = {
  name: 'a policy for identity assertions',
  base: server({}, { acceptedAssertionTypes: ['id_jag'] }),
  rows: [
    { id: '', at: `${policy}.subjectBindings`, good: [absent] },
    { id: '', at: `${policy}.replay`, good: ['once'], bad: ['untilExpiry'] },
    { id: '', at: `${policy}.maxAssertionAge`, bad: ['5m'] },
    { id: '', at: `${policy}.acceptedAudiences`, bad: [['a']] },
  ],
}

const matched: Table = {
  name: 'a binding with a matcher',
  base: server({}, {}, { matcher: 'true' }),
  rows: [
    { id: '', at: `${binding}.matcher`, good: ['x'.repeat(4096)], bad: ['', 'x'.repeat(4097), 1] },
    { id: '', at: `${binding}.subject`, bad: ['job'], failure: binding },
  ],
}

const identity = `${at}.clients[0].federated`

function federated(more: Doc): Doc {
  return document('MCPExternalAuthConfig', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      clients: [{ clientId: 'ci', scopes, federated: { issuerRef: 'ci', ...more } }],
      trustedIssuers: [{ name: 'ci', issuerUrl: 'https://ci.example.com' }],
    },
  })
}

const identities: Table = {
  name: 'clients[].federated',
  base: federated({ subject: 'job' }),
  rows: [
    { id: '', at: `${identity}.issuerRef`, required: true, bad: ['', 'CI', 1] },
    {
      id: '',
      at: `${identity}.subject`,
      good: ['a#b', 'x'.repeat(1024)],
      bad: ['', 'x'.repeat(1025), ...notString],
    },
    { id: '', at: `${identity}.subject`, bad: [absent], failure: identity },
    { id: '', at: `${identity}.matcher`, bad: ['true'], failure: identity },
    {
      id: '',
      at: `${identity}.maxAssertionAge`,
      good: [absent, '1m', '24h'],
      bad: ['59s', '24h1s', '', 'soon', 5],
    },
    { id: '', at: `${identity}.replay`, default: 'once', good: ['untilExpiry'], bad: ['', 'never', true] },
    { id: '', at: `${identity}.scopes`, bad: [scopes] },
  ],
}

const matchedIdentity: Table = {
  name: 'clients[].federated with a matcher',
  base: federated({ matcher: 'true' }),
  rows: [
    { id: '', at: `${identity}.matcher`, good: ['x'.repeat(4096)], bad: ['', 'x'.repeat(4097), 1] },
    { id: '', at: `${identity}.subject`, bad: ['job'], failure: identity },
  ],
}

const unnamed: Table = {
  name: 'embeddedAuthServer without trusted issuers',
  base: externalAuth('embeddedAuthServer'),
  rows: [
    { id: '', at: `${at}.trustedIssuers`, good: [absent, []] },
    { id: '', at: `${at}.inboundGrants`, good: [absent, {}], bad: [[], 'jwtBearer'] },
  ],
}

export const trustedIssuerTables: readonly Table[] = [
  exchanged,
  issuers,
  privateIssuer,
  policies,
  identityAssertions,
  matched,
  identities,
  matchedIdentity,
  unnamed,
]
