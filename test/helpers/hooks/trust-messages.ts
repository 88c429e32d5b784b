/** The messages for an authorization server's settings at admission and at startup. */
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { validateResource } from '../../../hooks/index.ts'
import { formatViolations } from '../../../schemas/index.ts'
import { embedded, resource, virtual } from '../../hooks/resources.ts'

export type Fields = Record<string, unknown>

/** The resource of the authorization server. */
export const url = 'https://door.example.com/mcp'

/** Returns the messages for both kinds and the message of the runtime, without the path of the settings. */
export function messagesFor(values: Fields): {
  readonly door: string
  readonly shared: string
  readonly file: string
} {
  const oidcConfigRef = { name: 'login', audience: url, resourceUrl: url }
  const door = virtual({ incomingAuth: { type: 'oidc', oidcConfigRef }, authServerConfig: embedded(values) })
  const shared = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded(values),
  })
  const text = (object: Parameters<typeof validateResource>[0], path: string): string =>
    formatViolations(validateResource(object).violations).replaceAll(`${path}.`, '')
  return {
    door: text(door, 'spec.authServerConfig'),
    shared: text(shared, 'spec.embeddedAuthServer'),
    file: fileMessage(values),
  }
}

/** Returns the message of the runtime; empty for valid settings. */
export function fileMessage(values: Fields): string {
  const file = { issuer: 'https://login.example.com', allowedAudiences: [url], ...values }
  try {
    parseAuthServerConfig(JSON.stringify(file), {})
    return ''
  } catch (error) {
    return String(error)
  }
}
