/**
 * The Content Security Policy of an app's page. The gateway has already narrowed the declared origins to the allowed
 * origins; this module also removes the console's own host, and drops malformed origins.
 * Source: MCP Apps, "UI resource metadata"; Content Security Policy Level 3.
 */
import { isFields, listOf } from '../../../schemas/index.ts'
import { isLoopbackHost } from '../../net/index.ts'

const plainOrigin = /^(?:https?|wss?):\/\/(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i
const maxOrigins = 100
const maxOriginLength = 300

/**
 * Returns the policy for a page. `csp` is the declared value, and `host` the console's Host header. The page gets an
 * opaque origin. It may run its inline scripts, but loads from and connects to only the declared origins. Chromium has no
 * directive that blocks WebRTC.
 */
export function appPolicy(csp: unknown, host: string): string {
  const consoleName = new URL(`http://${host}`).hostname
  const declared = isFields(csp) ? csp : {}
  const origins = (name: string): readonly string[] =>
    listOf(declared[name])
      .filter((origin) => typeof origin === 'string')
      .filter((origin) => origin.length <= maxOriginLength && plainOrigin.test(origin))
      .filter((origin) => !coversHost(origin, consoleName))
      .slice(0, maxOrigins)
  const resources = origins('resourceDomains')
  const directive = (name: string, ...values: readonly string[]): string =>
    `${name} ${values.length > 0 ? values.join(' ') : "'none'"}`
  return [
    'sandbox allow-scripts',
    "default-src 'none'",
    directive('script-src', "'unsafe-inline'", ...resources),
    directive('style-src', "'unsafe-inline'", ...resources),
    directive('img-src', 'data:', 'blob:', ...resources),
    directive('font-src', 'data:', ...resources),
    directive('media-src', 'data:', 'blob:', ...resources),
    directive('connect-src', ...origins('connectDomains')),
    directive('frame-src', ...origins('frameDomains')),
    directive('base-uri', ...origins('baseUriDomains')),
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; ')
}

/** True if an origin matches the console's host on any port. A console on this machine matches every loopback host. */
function coversHost(origin: string, consoleName: string): boolean {
  const [, wildcard, name = ''] = /^[a-z]+:\/\/(\*\.)?([^:]*)/i.exec(origin.toLowerCase()) ?? []
  if (isLoopbackHost(consoleName) && (isLoopbackHost(name) || name.endsWith('.localhost'))) return true
  return wildcard === undefined ? name === consoleName : consoleName.endsWith(`.${name}`)
}
