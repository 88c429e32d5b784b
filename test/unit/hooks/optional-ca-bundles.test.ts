/**
 * The condition of a configuration with several CA bundles names every absent bundle, and a consumer mounts the
 * remaining ones.
 */
import t from 'tap'
import type { KubeObject } from '../../../hooks/base/kube.ts'
import { hasCaBundle } from '../../../hooks/references/resolve.ts'
import { configMap, embedded, resource, world } from '../../hooks/resources.ts'
import type { Condition } from '../../hooks/world.ts'

/** Returns an authorization server with one upstream for each bundle. */
function serverWith(...maps: object[]) {
  const upstreamProviders = maps.map((configMapRef, index) => ({
    name: `corp-${index}`,
    type: 'oidc',
    oidcConfig: { issuerUrl: `https://corp-${index}.example.com`, clientId: 'door' },
    caBundleRef: { configMapRef },
  }))
  const server = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({ upstreamProviders }),
  })
  const w = world(configMap('present', { 'ca.crt': 'pem' }), server).settle()
  return w.get('MCPExternalAuthConfig', 'server')
}

function conditionFor(...maps: object[]) {
  const { conditions } = serverWith(...maps)['status'] as { conditions: Condition[] }
  return conditions.find(({ type }) => type === 'CABundleRefValidated')
}

t.test('the condition names every absent optional CA bundle', async (t) => {
  const found = conditionFor(
    { name: 'first', optional: true },
    { name: 'present', optional: true },
    { name: 'present', key: 'other.pem', optional: true },
  )
  t.match(found, { status: 'True', reason: 'CABundleRefAbsent' })
  t.match(
    found?.message,
    /^ConfigMap first does not exist; ConfigMap present has no key other\.pem \(optional\)/,
  )
})

t.test('the condition names every missing required CA bundle', async (t) => {
  const found = conditionFor({ name: 'first', optional: true }, { name: 'second' }, { name: 'third' })
  t.match(found, { status: 'False', reason: 'CABundleRefNotFound' })
  t.equal(found?.message, 'ConfigMap second does not exist; ConfigMap third does not exist')
})

t.test('an absent optional CA bundle does not affect the other bundles of the configuration', async (t) => {
  const absent = { name: 'first', optional: true }
  const present = { name: 'present', optional: true }
  const withoutKey = { name: 'present', key: 'ca.crt.old', optional: true }
  const server = serverWith(absent, present, withoutKey) as KubeObject
  t.equal(hasCaBundle(server, { configMapRef: absent }), false)
  t.equal(hasCaBundle(server, { configMapRef: present }), true)
  t.equal(hasCaBundle(server, { configMapRef: withoutKey }), false)
  t.equal(hasCaBundle({ ...server, status: {} }, { configMapRef: present }), false, 'the status is unknown')
})

t.test('the status lists the absent optional CA bundles', async (t) => {
  const server = serverWith(
    { name: 'first', optional: true },
    { name: 'present', optional: true },
    { name: 'present', key: 'other.pem', optional: true },
  )
  t.match(server['status'], { absentCaBundles: ['first/ca.crt', 'present/other.pem'] })
  t.notOk('absentCaBundles' in (serverWith({ name: 'present', optional: true })['status'] as object))
})

t.test('the status lists absent optional CA bundles when a Secret is missing', async (t) => {
  const upstream = {
    name: 'corp',
    type: 'oidc',
    oidcConfig: {
      issuerUrl: 'https://corp.example.com',
      clientId: 'door',
      clientSecretRef: { name: 'missing', key: 'client' },
    },
    caBundleRef: { configMapRef: { name: 'first', optional: true } },
  }
  const server = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({ upstreamProviders: [upstream] }),
  })
  const { status } = world(server).settle().get('MCPExternalAuthConfig', 'server')
  t.match(status, { absentCaBundles: ['first/ca.crt'] })
  const { conditions } = status as { conditions: Condition[] }
  t.match(
    conditions.find(({ type }) => type === 'Valid'),
    { status: 'False', reason: 'SecretNotFound' },
  )
})

t.test('a consumer does not read the message of the condition', async (t) => {
  const absent = { name: 'first', optional: true }
  const present = { name: 'present', optional: true }
  const server = serverWith(absent, present) as KubeObject
  const { conditions, ...status } = server['status'] as { conditions: Condition[] }
  const reworded = conditions.map((condition) => ({ ...condition, message: 'No ConfigMap was found' }))
  const current = { ...server, status: { ...status, conditions: reworded } }
  t.equal(hasCaBundle(current, { configMapRef: present }), true)
  t.equal(hasCaBundle(current, { configMapRef: absent }), false)
  const older = { ...server, status: { conditions: reworded } }
  t.equal(hasCaBundle(older, { configMapRef: present }), false, 'an older version wrote no list')
  t.equal(hasCaBundle(older, { configMapRef: { name: 'present' } }), true, 'required bundles are mounted')
})
