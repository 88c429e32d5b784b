/**
 * ConfigMaps of an embedded authorization server: CA bundles, and the bundles of SPIFFE trust domains.
 *
 * The pods mount whole ConfigMaps, so that the kubelet updates the files, and the running server rereads them.
 */
import type { CABundleSource, EmbeddedAuthServerConfig, input } from '../../schemas/index.ts'
import type { PodNeeds } from './needs.ts'

const directory = '/etc/gatehouse/authserver/spiffe'

export function spiffePart(
  { spiffeTrustDomains }: EmbeddedAuthServerConfig,
  needs: PodNeeds,
): input.AuthServerFile['spiffeTrustDomains'] {
  return spiffeTrustDomains?.map(({ bundleSource, ...domain }) => {
    const { name, key } = bundleSource.configMapRef
    const path = `${directory}/${domain.name}`
    needs.configFiles(`authserver-spiffe-${domain.name}`, path, name)
    return { ...domain, bundlePath: `${path}/${key}` }
  })
}

/** Lists the CA bundles of upstream providers and trusted issuers, and the bundles of trust domains. */
export function authServerBundles(config: EmbeddedAuthServerConfig): readonly CABundleSource[] {
  const { upstreamProviders, trustedIssuers = [] } = config
  const anchors = [...upstreamProviders, ...trustedIssuers].flatMap(({ caBundleRef }) => caBundleRef ?? [])
  return [...anchors, ...rereadBundles(config)]
}

/** Lists the bundles whose changes do not require new pods: a trust domain rotates its keys every few hours. */
export function rereadBundles({
  spiffeTrustDomains = [],
}: EmbeddedAuthServerConfig): readonly CABundleSource[] {
  return spiffeTrustDomains.map(({ bundleSource }) => bundleSource)
}
