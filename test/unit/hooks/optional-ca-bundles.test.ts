/**
 * The condition of a configuration with several CA bundles names every one that is absent.
 */
import t from 'tap'
import { configMap, embedded, resource, world } from '../../hooks/resources.ts'
import type { Condition } from '../../hooks/world.ts'

/** Returns the condition of an authorization server with one upstream for each bundle. */
function conditionFor(...maps: object[]) {
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
  const { conditions } = w.get('MCPExternalAuthConfig', 'server')['status'] as { conditions: Condition[] }
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
