/** Unusable settings of a backend, each with the expected report. */
import { join } from 'node:path'

export interface Case {
  readonly what: string
  /** The setting of the backend `bad`. */
  readonly backend?: object
  readonly strategy?: object
  readonly default?: object
  readonly file?: object
  readonly env?: Readonly<Record<string, string>>
  readonly problem: RegExp
  /** Must not appear in any output. */
  readonly secret?: string
}

export const header = (more: object) => ({
  type: 'header_injection',
  headerInjection: { headerName: 'X-Key', ...more },
})
const exchange = (more: object) => ({ type: 'token_exchange', tokenExchange: { ...more } })
const xaa = (more: object) => ({
  type: 'xaa',
  xaa: {
    idpTokenUrl: 'https://login.example/token',
    idpClientId: 'c',
    targetTokenUrl: 'https://target.example/token',
    targetAudience: 'https://target.example',
    ...more,
  },
})
const forward = (value: unknown) => ({ GATEHOUSE_HEADER_FORWARD_BAD: JSON.stringify(value) })
const aggregation = (tools: object) => ({
  aggregation: { conflictResolution: 'prefix', tools: [{ workload: 'bad', ...tools }] },
})

/** `dir` contains empty.pem and damaged.pem. */
export function excludedCases(dir: string): readonly Case[] {
  return [
    {
      what: 'a variable of its strategy is not set',
      strategy: header({ headerValueEnv: 'NOT_SET' }),
      problem: /outgoingAuth\.backends\.bad\.headerInjection.*NOT_SET is not set/,
    },
    {
      what: 'its header has both a value and a variable',
      strategy: header({ headerValue: 'hush', headerValueEnv: 'KEY' }),
      env: { KEY: 'hush' },
      problem: /outgoingAuth\.backends\.bad\.headerInjection/,
      secret: 'hush',
    },
    {
      what: 'its header has no value',
      strategy: header({}),
      problem: /outgoingAuth\.backends\.bad\.headerInjection/,
    },
    {
      what: 'its bearer token is not set',
      strategy: { type: 'bearer_token', bearerToken: { tokenEnv: 'NOT_SET' } },
      problem: /bearerToken\.tokenEnv.*NOT_SET is not set/,
    },
    {
      what: 'the secret of its client at the token service is not set',
      strategy: exchange({
        tokenUrl: 'https://sts.example/token',
        clientId: 'c',
        clientSecretEnv: 'NOT_SET',
      }),
      problem: /tokenExchange\.clientSecretEnv.*NOT_SET is not set/,
    },
    {
      what: 'the secret of its client at the identity provider is not set',
      strategy: xaa({ idpClientSecretEnv: 'NOT_SET' }),
      problem: /xaa\.idpClientSecretEnv.*NOT_SET is not set/,
    },
    {
      what: 'the secret of its client at the target is not set',
      strategy: xaa({ targetClientId: 'd', targetClientSecretEnv: 'NOT_SET' }),
      problem: /xaa\.targetClientSecretEnv.*NOT_SET is not set/,
    },
    {
      what: 'the secret of its client for on-behalf-of exchange is not set',
      strategy: {
        type: 'obo',
        obo: {
          tokenUrl: 'https://login.example/token',
          clientId: 'c',
          clientSecretEnv: 'NOT_SET',
          audience: 'a',
        },
      },
      env: { GATEHOUSE_ENABLE_OBO: 'true' },
      problem: /obo\.clientSecretEnv.*NOT_SET is not set/,
    },
    {
      what: 'its credential cannot be sent',
      strategy: header({ headerValueEnv: 'KEY' }),
      env: { KEY: 'hush\nhush' },
      problem: /must not contain control characters/,
      secret: 'hush',
    },
    {
      what: 'its upstream provider does not exist',
      strategy: { type: 'upstream_inject', upstreamInject: { providerName: 'corp' } },
      problem: /requires an embedded authorization server/,
    },
    {
      what: 'its token service is not https',
      strategy: exchange({ tokenUrl: 'http://sts.example/token' }),
      problem: /tokenExchange\.tokenUrl/,
    },
    {
      what: 'it relies on a default that cannot be made',
      default: header({ headerValueEnv: 'NOT_SET' }),
      file: { good: header({ headerValue: 'g' }) },
      problem: /outgoingAuth\.default\..*NOT_SET/,
    },
    {
      what: 'its header is restricted',
      strategy: header({ headerName: 'Host', headerValue: 'hush' }),
      problem: /a restricted header cannot be set/,
      secret: 'hush',
    },
    {
      what: 'its strategy has no settings',
      strategy: { type: 'header_injection' },
      problem: /outgoingAuth\.backends\.bad.*headerInjection/,
    },
    {
      what: 'the file names a variable for its headers that the pod does not have yet',
      backend: { headersEnv: 'GATEHOUSE_HEADER_FORWARD_BAD' },
      problem: /backends\.bad\.headersEnv: the variable GATEHOUSE_HEADER_FORWARD_BAD is not set/,
    },
    {
      what: 'its forwarded headers are not JSON',
      env: { GATEHOUSE_HEADER_FORWARD_BAD: '{"hush' },
      problem: /GATEHOUSE_HEADER_FORWARD_BAD: must be a JSON object/,
      secret: 'hush',
    },
    { what: 'its forwarded headers are a list', env: forward([]), problem: /must be a JSON object/ },
    {
      what: 'a forwarded header is not text',
      env: forward({ addPlaintextHeaders: { A: 1 } }),
      problem: /must map header names to strings/,
    },
    {
      what: 'a forwarded header is restricted',
      env: forward({ addPlaintextHeaders: { Forwarded: 'hush' } }),
      problem: /Forwarded is set by the gateway and cannot be configured/,
      secret: 'hush',
    },
    {
      what: 'the secret of a forwarded header is not there',
      env: forward({ addHeadersFromSecret: { 'X-Key': 'GONE' } }),
      problem: /GATEHOUSE_SECRET_GONE is not set/,
    },
    {
      what: 'the secret of a forwarded header cannot be sent',
      env: { ...forward({ addHeadersFromSecret: { 'X-Key': 'S' } }), GATEHOUSE_SECRET_S: 'hush\nhush' },
      problem: /the value of X-Key must not contain control characters/,
      secret: 'hush',
    },
    {
      what: 'its trust anchors are missing',
      backend: { type: 'entry', caBundlePath: join(dir, 'missing.pem') },
      problem: /backends\.bad\.caBundlePath: the file \S+ cannot be read/,
    },
    {
      what: 'its trust anchors cannot be read',
      backend: { type: 'entry', caBundlePath: dir },
      problem: /backends\.bad\.caBundlePath: the file \S+ cannot be read/,
    },
    {
      what: 'its trust anchors are empty',
      backend: { type: 'entry', caBundlePath: join(dir, 'empty.pem') },
      problem: /caBundlePath: the file \S+ contains no PEM/,
    },
    {
      what: 'its trust anchors are damaged',
      backend: { type: 'entry', caBundlePath: join(dir, 'damaged.pem') },
      problem: /caBundlePath: the file \S+ contains a certificate that cannot be parsed, number 1/,
    },
    { what: 'its address cannot be parsed', backend: { url: 'http://[half' }, problem: /url: is not a URL/ },
    {
      what: 'its address is that of a metadata service',
      backend: { url: 'http://169.254.169.254/mcp' },
      problem: /backends\[1\]\.url: points to a link-local, .*metadata address/,
    },
    {
      what: 'its address is not allowed',
      backend: { addresses: 'private' },
      problem: /backends\.bad\.url: points to a loopback address/,
    },
    { what: 'its address is not a web address', backend: { url: 'ftp://a' }, problem: /backends\[1\]\.url/ },
    {
      what: 'its transport is unknown',
      backend: { transport: 'pigeon' },
      problem: /backends\[1\]\.transport/,
    },
    { what: 'it has an unknown setting', backend: { ulr: 'x' }, problem: /backends\[1\].*ulr/ },
    {
      what: 'its timeout is not a valid duration',
      file: { operational: { timeouts: { perWorkload: { bad: 'soon' } } } },
      problem: /operational\.timeouts\.perWorkload\.bad/,
    },
    {
      what: 'its tool filter has the wrong shape',
      file: aggregation({ filter: 'echo' }),
      problem: /aggregation\.tools\[0\]\.filter/,
    },
    {
      what: 'an override of its tools has an unknown setting',
      file: aggregation({ overrides: { echo: { nmae: 'x' } } }),
      problem: /aggregation\.tools\[0\]\.overrides/,
    },
  ]
}
