/** Selects the configured decision point and its wire format. */
import type { RuntimeAuthz, RuntimeAuthzenPoint, RuntimeDecisionPoint } from '../../../schemas/index.ts'
import { authzenFormat } from './authzen.ts'
import type { WireFormat } from './format.ts'
import { httpv1Format } from './httpv1.ts'

/** A decision point's type and settings, which match those in RuntimeAuthz. */
export type ExternalPoint =
  | { readonly type: 'httpv1'; readonly settings: RuntimeDecisionPoint }
  | { readonly type: 'authzenv1'; readonly settings: RuntimeAuthzenPoint }

export function formatOf({ type, settings }: ExternalPoint): WireFormat {
  return type === 'httpv1' ? httpv1Format(settings) : authzenFormat(settings)
}

/** Returns undefined when no decision point is configured. */
export function externalPoint(authz: RuntimeAuthz | undefined): ExternalPoint | undefined {
  if (authz?.type === 'httpv1' && authz.httpv1) return { type: 'httpv1', settings: authz.httpv1 }
  if (authz?.type === 'authzenv1' && authz.authzenv1) return { type: 'authzenv1', settings: authz.authzenv1 }
  return undefined
}

export function endpoint({ settings }: ExternalPoint, path: string): string {
  return `${settings.http.url.replace(/\/+$/, '')}${path}`
}
