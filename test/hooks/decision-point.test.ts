/** External decision points in manifests: both spellings, Secrets as files, admission, and the result for each kind. */
import t from 'tap'
import { decisionPointPart, readDecisionPoint } from '../../hooks/runtime-config/decision-point.ts'
import { PodNeeds } from '../../hooks/runtime-config/needs.ts'
import { remote, virtual, world } from './resources.ts'
import { servingCertificate } from './serving-certificate.ts'
import { configMap, resource, secret } from './world.ts'
import { type MCPAuthzConfig, validateManifest, validateRuntime } from '../../schemas/index.ts'
import { authzConfigViolations, authzConfigWarnings } from '../../hooks/kinds/mcpauthzconfig/validate.ts'

const url = 'https://pdp.example.com'
const pdp = {
  http: {
    url,
    timeout: 3,
    ca_bundle_ref: { name: 'company-ca' },
    client_certificate_secret_ref: { name: 'client' },
    bearer_token_secret_ref: { name: 'pdp', key: 'token' },
  },
  claim_mapping: 'standard',
  context: { include_args: true },
  cache: { max_entries: 5 },
}

const shared = (config: Record<string, unknown>, type = 'httpv1'): MCPAuthzConfig => ({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'MCPAuthzConfig',
  metadata: { name: 'p', namespace: 'default' },
  spec: { type, config },
})

t.test('both spellings have the same result, and Secrets become files', (t) => {
  const { value } = readDecisionPoint('httpv1', pdp)
  if (!value) throw new Error('not read')
  const needs = new PodNeeds()
  const authz = decisionPointPart(value, needs)
  t.match(authz, {
    type: 'httpv1',
    httpv1: {
      http: {
        url,
        timeout: '3s',
        caBundlePath: '/config/decision-point/ca/ca.crt',
        clientCertificatePath: '/config/decision-point/client/tls.crt',
        clientKeyPath: '/config/decision-point/client/tls.key',
        bearerTokenPath: '/config/decision-point/token/token',
      },
      context: { includeArgs: true, includeOperation: false },
      cache: { ttl: '10s', maxEntries: 5 },
      circuitBreaker: { failureThreshold: 5, timeout: '10s' },
    },
  })
  t.same(
    needs.mounts.map(({ mountPath }) => mountPath),
    ['/config/decision-point/ca', '/config/decision-point/client', '/config/decision-point/token'],
  )
  t.match(JSON.stringify(needs.volumes), /"secretName":"client".*"secretName":"pdp"/)
  const file = { name: 'x', targetUri: 'https://x.example.com/mcp', authz }
  t.same(validateRuntime('proxy', file).violations, [], 'the runtime accepts it')
  t.end()
})

t.test('all problems are reported at once, in the spelling of the manifest', (t) => {
  const paths = (config: Record<string, unknown>) =>
    authzConfigViolations(shared(config)).map(({ path }) => path)
  t.same(paths(pdp), [])
  t.same(paths({ http: { url, timeout: 30, insecure_skip_verify: true }, claim_mapping: 'mpe' }), [])
  const plain = { url: 'http://localhost:9000', insecure_skip_verify: true }
  t.same(paths({ http: plain, claim_mapping: 'mpe' }), [], 'without https there is no certificate to verify')
  t.same(paths({}), ['spec.config.claim_mapping', 'spec.config.http'])
  t.same(paths({ http: {}, claim_mapping: 'other', extra: 1 }), [
    'spec.config.claim_mapping',
    'spec.config.extra',
    'spec.config.http.url',
  ])
  t.same(paths({ http: { url: 'http://169.254.169.254/' }, claim_mapping: 'mpe' }), ['spec.config.http.url'])
  t.same(paths({ http: { url, timeout: 0 }, claim_mapping: 'mpe' }), ['spec.config.http.timeout'])
  t.same(paths({ http: { url }, claimMapping: 'mpe' }), ['spec.config.claimMapping'])
  t.match(
    authzConfigViolations(
      shared({
        http: { url: 'http://pdp', bearer_token_secret_ref: { name: 'a', key: 'b' } },
        claim_mapping: 'mpe',
      }),
    ),
    [{ path: 'spec.config.http.url', message: /bearer_token_secret_ref.* need an https URL/ }],
  )
  t.end()
})

t.test('an insecure connection to a decision point causes a warning', (t) => {
  const warnings = (http: Record<string, unknown>) =>
    authzConfigWarnings(shared({ http, claim_mapping: 'mpe' }))
  t.same(warnings({ url }), [])
  t.same(warnings({ url: 'http://localhost:9000' }), [])
  t.match(warnings({ url: 'http://localhost.example.com' }), [/not https/])
  t.match(warnings({ url, insecure_skip_verify: true }), [/insecureSkipVerify/])
  t.end()
})

t.test('authzConfig: type and block must match', (t) => {
  const manifest = (authzConfig: unknown) => ({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPRemoteProxy',
    metadata: { name: 'crm' },
    spec: { remoteUrl: 'https://crm.example.com/mcp', authzConfig },
  })
  const httpv1 = { http: { url }, claimMapping: 'standard' }
  t.same(validateManifest(manifest({ type: 'httpv1', httpv1 })), [])
  t.match(validateManifest(manifest({ type: 'httpv1' })), [{ message: /httpv1 must be set exactly/ }])
  const inline = { policies: ['permit(principal, action, resource);'] }
  t.match(validateManifest(manifest({ type: 'inline', inline, httpv1 })), [{ message: /httpv1 must be set/ }])
  t.end()
})

t.test('the kind that names a missing Secret reports it', (t) => {
  const authzConfig = {
    type: 'httpv1',
    httpv1: {
      http: { url, clientCertificateSecretRef: { name: 'client' } },
      claimMapping: 'standard',
    },
  }
  const conditions = (w: ReturnType<typeof world>, kind: string, name: string) =>
    (w.get(kind, name)['status'] as { conditions: { type: string; message: string }[] }).conditions
  const without = world(remote('crm', { authzConfig })).settle()
  t.match(JSON.stringify(conditions(without, 'MCPRemoteProxy', 'crm')), /Secret client, key tls\.crt/)
  const door = { incomingAuth: { type: 'anonymous', authzConfig } }
  const closed = world(virtual(door)).settle()
  t.match(JSON.stringify(conditions(closed, 'VirtualMCPServer', 'door')), /Secret client, key tls\.key/)
  const given = world(virtual(door), secret('client', servingCertificate)).settle()
  t.notMatch(JSON.stringify(conditions(given, 'VirtualMCPServer', 'door')), /Secret client/)
  t.end()
})

t.test('AuthZEN: the same files and checks, and additional members', (t) => {
  const { claim_mapping: _, cache: __, ...authzen } = pdp
  const { value } = readDecisionPoint('authzenv1', authzen)
  if (!value) throw new Error('not read')
  const needs = new PodNeeds()
  const authz = decisionPointPart(value, needs)
  t.match(authz, {
    type: 'authzenv1',
    httpv1: undefined,
    authzenv1: {
      http: { url, timeout: '3s', bearerTokenPath: '/config/decision-point/token/token' },
      claimMapping: 'standard',
      context: { includeArgs: true },
      circuitBreaker: { failureThreshold: 5, timeout: '10s' },
    },
  })
  t.equal(needs.mounts.length, 3)
  const file = { name: 'x', targetUri: 'https://x.example.com/mcp', authz }
  t.same(validateRuntime('proxy', file).violations, [], 'the runtime accepts it')

  const paths = (config: Record<string, unknown>) =>
    authzConfigViolations(shared(config, 'authzenv1')).map(({ path }) => path)
  t.same(paths(authzen), [])
  t.same(paths({}), ['spec.config.http'])
  t.same(paths({ http: { url }, context: { include_operation: true }, claim_mapping: 'all' }), [
    'spec.config.claim_mapping',
    'spec.config.context.include_operation',
  ])
  const insecure = { http: { url: 'http://pdp.example.com' } }
  t.match(authzConfigWarnings(shared(insecure, 'authzenv1')), [/not https/])

  const manifest = (authzConfig: object) => ({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'VirtualMCPServer',
    metadata: { name: 'door' },
    spec: { groupRef: { name: 'tools' }, incomingAuth: { type: 'anonymous', authzConfig } },
  })
  t.same(validateManifest(manifest({ type: 'authzenv1', authzenv1: { http: { url } } })), [])
  t.match(validateManifest(manifest({ type: 'authzenv1' })), [{ message: /authzenv1 must be set exactly/ }])
  t.end()
})

t.test('AuthZEN: accepted from a ConfigMap, and rejected with a condition in MCPAuthzConfig', (t) => {
  const envelope = { version: '1.0', type: 'authzenv1', pdp: { http: { url } } }
  const map = configMap('pdp', { 'authz.json': JSON.stringify(envelope) })
  const named = { incomingAuth: { type: 'anonymous', authzConfig: { configMap: { name: 'pdp' } } } }
  const w = world(virtual(named), map).settle()
  const file = JSON.stringify(w.get('ConfigMap', 'door-vmcp-config')['data'])
  t.match(file, /authzenv1/)

  const referring = virtual({ incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'p' } } })
  const refused = world(
    referring,
    resource('MCPAuthzConfig', 'p', shared({ http: { url } }, 'authzenv1').spec),
  ).settle()
  const status = JSON.stringify(refused.get('VirtualMCPServer', 'door')['status'])
  t.match(
    status,
    /only cedarv1 is supported here: configure the decision point in authzConfig with type authzenv1/,
  )
  t.end()
})
