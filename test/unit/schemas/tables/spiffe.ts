/** SPIFFE trust domains of the embedded authorization server, and the clients that they identify. */
import { absent, type Doc, document, type Json, notString, type Table } from './table.ts'

const at = 'spec.embeddedAuthServer'
const domain = `${at}.spiffeTrustDomains[0]`
const auth = `${at}.inboundGrants.spiffeClientAuth[0]`
const scopes = ['tools:read']
const configMapRef = { name: 'spire-bundle', key: 'bundle.spiffe' }
const trustDomain = { name: 'prod', trustDomain: 'prod.example.com', bundleSource: { configMapRef } }
const client = {
  trustDomainRef: 'prod',
  principalPattern: 'spiffe://prod.example.com/jobs/*',
  clientId: 'jobs',
  scopes,
}

function server(domainMore: Doc, clientMore: Doc): Doc {
  return document('MCPExternalAuthConfig', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      spiffeTrustDomains: [{ ...trustDomain, ...domainMore }],
      inboundGrants: { spiffeClientAuth: [{ ...client, ...clientMore }] },
    },
  })
}

function numbered(count: number, make: (index: number) => Json): Json {
  return Array.from({ length: count }, (_, index) => make(index))
}

const domains: Table = {
  name: 'spiffeTrustDomains',
  base: server({}, {}),
  rows: [
    {
      id: '',
      at: `${at}.spiffeTrustDomains`,
      good: [numbered(10, (i) => ({ ...trustDomain, name: `d${i}`, trustDomain: `d${i}` }))],
      bad: [numbered(11, (i) => ({ ...trustDomain, name: `d${i}`, trustDomain: `d${i}` })), {}],
    },
    { id: '', at: `${at}.spiffeTrustDomains[1]`, bad: [trustDomain] },
    { id: '', at: `${domain}.name`, required: true, good: ['a', 'a-1'], bad: ['', 'A', '-a', 1] },
    {
      id: '',
      at: `${domain}.trustDomain`,
      required: true,
      good: ['a', 'a_b.c-d', 'x'.repeat(255)],
      bad: ['', 'A', 'spiffe://a', 'a/b', 'a:1', 'x'.repeat(256), ...notString],
    },
    { id: '', at: `${domain}.bundleSource`, required: true, bad: ['file'] },
    { id: '', at: `${domain}.bundleSource.configMapRef`, required: true, bad: ['spire-bundle'] },
    { id: '', at: `${domain}.bundleSource.configMapRef.name`, required: true, bad: ['', 'A b', 1] },
    { id: '', at: `${domain}.bundleSource.configMapRef.key`, required: true, bad: ['', 'a/b', 1] },
    { id: '', at: `${domain}.bundleSource.file`, bad: [{ configMapName: 'a' }] },
    { id: '', at: `${domain}.methods`, bad: [['spiffe_x509']] },
  ],
}

const clients: Table = {
  name: 'inboundGrants.spiffeClientAuth',
  base: server({}, { resources: ['https://a.example'] }),
  rows: [
    {
      id: '',
      at: `${at}.inboundGrants.spiffeClientAuth`,
      good: [numbered(50, (i) => ({ ...client, clientId: `c${i}` }))],
      bad: [[], numbered(51, (i) => ({ ...client, clientId: `c${i}` })), {}],
    },
    { id: '', at: `${at}.inboundGrants.spiffeClientAuth[1]`, bad: [client] },
    { id: '', at: `${auth}.trustDomainRef`, required: true, bad: ['', 'PROD', 1] },
    {
      id: '',
      at: `${auth}.principalPattern`,
      required: true,
      good: ['spiffe://prod.example.com/*', 'spiffe://a/b', 'spiffe://a/b/c_D.e-1', 'spiffe://a/b/*'],
      bad: [
        '',
        'spiffe://a',
        'spiffe://a/',
        'spiffe://*/a',
        'spiffe://a/*/b',
        'spiffe://a/b*',
        'spiffe://a//b',
        'spiffe://A/b',
        'https://a/b',
        `spiffe://a/${'x'.repeat(2048)}`,
        ...notString,
      ],
    },
    {
      id: '',
      at: `${auth}.clientId`,
      required: true,
      good: ['a', 'x'.repeat(128)],
      bad: ['', 'client:a', 'x'.repeat(129), 1],
    },
    {
      id: '',
      at: `${auth}.scopes`,
      required: true,
      good: [numbered(10, (i) => `s${i}`)],
      bad: [[], ['openid'], ['a', 'offline_access'], numbered(11, (i) => `s${i}`)],
    },
    { id: '', at: `${auth}.scopes[0]`, good: ['x'.repeat(256)], bad: ['', 'a b', 'x'.repeat(257)] },
    { id: '', at: `${auth}.scopes[1]`, bad: scopes },
    {
      id: '',
      at: `${auth}.resources`,
      good: [absent, ['https://mcp.example.com']],
      bad: [[], numbered(11, (i) => `https://a${i}.example`)],
    },
    { id: '', at: `${auth}.resources[0]`, bad: ['', 'mcp'] },
    { id: '', at: `${auth}.resources[1]`, bad: ['https://a.example'] },
    {
      id: '',
      at: `${auth}.maxAssertionAge`,
      default: '5m',
      good: ['1m', '24h'],
      bad: ['59s', '24h1s', '', 'soon', 5],
    },
    { id: '', at: `${auth}.replay`, default: 'once', good: ['untilExpiry'], bad: ['', 'never', true] },
    { id: '', at: `${auth}.methods`, bad: [['spiffe_x509']] },
    { id: '', at: `${auth}.grantTypes`, bad: [['client_credentials']] },
  ],
}

export const spiffeTables: readonly Table[] = [domains, clients]
