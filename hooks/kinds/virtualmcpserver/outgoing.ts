/**
 * How the virtual server authenticates to each backend.
 *
 * Order, in both modes: the entry for the backend in spec.outgoingAuth.backends, the member's own reference, the
 * default, nothing. An entry of type `discovered` means the member's own reference.
 * Source: spec document 3, "spec.outgoingAuth".
 */
import type { BackendAuth, VirtualMCPServer } from '../../../schemas/index.ts'
import type { Fault } from '../../conditions.ts'
import type { Strategy } from '../../externalauth/index.ts'

export interface BackendStrategy {
  readonly strategy: Strategy | undefined
  readonly authConfigRef: string | undefined
  readonly fault: Fault | undefined
}

export interface StrategyResolver {
  /** `own` is the MCPExternalAuthConfig that the member itself names. */
  readonly strategyFor: (backend: string, own: string | undefined) => BackendStrategy
}

export type ResolveConfig = (name: string) => Omit<BackendStrategy, 'authConfigRef'>

/** `resolve` turns an MCPExternalAuthConfig into a strategy. */
export function strategyResolver(server: VirtualMCPServer, resolve: ResolveConfig): StrategyResolver {
  const outgoing = server.spec.outgoingAuth
  const fallback = refOf(outgoing?.default)
  return {
    strategyFor(backend, own) {
      const entries = outgoing?.backends ?? {}
      const entry = Object.hasOwn(entries, backend) ? entries[backend] : undefined
      const name = refOf(entry) ?? own ?? fallback
      if (name === undefined) return { strategy: undefined, authConfigRef: undefined, fault: undefined }
      const { strategy, fault } = resolve(name)
      return { strategy, fault, authConfigRef: name }
    },
  }
}

/** Name of the MCPExternalAuthConfig that an entry demands; a reference beside type `discovered` means nothing. */
function refOf(auth: BackendAuth | undefined): string | undefined {
  return auth?.type === 'externalAuthConfigRef' ? auth.externalAuthConfigRef?.name : undefined
}
