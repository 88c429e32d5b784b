/** MCPExternalAuthConfig: what the author of a valid one should know. */
import type { MCPExternalAuthConfig } from '../../../schemas/index.ts'
import { authServerWarnings } from '../../externalauth/index.ts'

export function externalAuthWarnings({ spec }: MCPExternalAuthConfig): readonly string[] {
  if (spec.type === 'unauthenticated') return ['type unauthenticated: the backend gets no credentials']
  return spec.embeddedAuthServer ? authServerWarnings(spec.embeddedAuthServer, 'embeddedAuthServer') : []
}
