/**
 * Determines the method with which the virtual server authenticates to each backend.
 *
 * Precedence: the backend's entry in spec.outgoingAuth.backends, the member's own reference, the default, none. With
 * source `inline`, a member's own reference only applies if the entry (or the default, if there is no entry) has the
 * type `discovered`. A broken configuration excludes the backend; the default never replaces it.
 * Source: docs/reference/specification/virtual-server.md#outgoingAuth, "spec.outgoingAuth".
 */
import type { BackendAuth, VirtualMCPServerSpec } from '../../../../schemas/index.ts'
import type { SyncFailure, ConfigPart } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import { type Strategy, toStrategy } from '../../../externalauth/index.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { configCalled, configHashOf } from '../../../references/resolve.ts'

type Context = SyncContext<'VirtualMCPServer'>

interface BackendStrategy {
  /** Strategy for the backend; undefined when the default strategy applies. */
  readonly strategy: Strategy | undefined
  readonly authConfigRef: string | undefined
  /** True when spec.outgoingAuth.backends selects the configuration. */
  readonly explicit: boolean
  readonly failure: SyncFailure | undefined
}

export interface OutgoingConfig {
  /** `own` is the MCPExternalAuthConfig that the member refers to. */
  readonly strategyFor: (backend: string, own: string | undefined) => BackendStrategy
  readonly defaultStrategy: Strategy | undefined
}

/** Resolves configurations on demand, and adds the secrets of used configurations to the pod. */
export function outgoingAuth(context: Context, serverNeeds: PodNeeds): OutgoingConfig {
  const needs = serverNeeds.forBackends()
  const { outgoingAuth: outgoing } = context.parent.spec
  const known = new Map<string, ConfigPart<Strategy>>()
  const resolve = (name: string): ConfigPart<Strategy> => {
    const found = known.get(name) ?? resolveConfig(context, needs, name)
    known.set(name, found)
    return found
  }
  const fallback = refOf(outgoing?.default)
  const byDefault = fallback === undefined ? undefined : resolve(fallback)
  if (byDefault) {
    context.conditions.check(
      'DefaultAuthConfig',
      byDefault.failure,
      'ConversionSucceeded',
      `Uses MCPExternalAuthConfig ${fallback}`,
    )
  }
  return {
    defaultStrategy: byDefault?.value,
    strategyFor(backend, own) {
      const entries = outgoing?.backends ?? {}
      const listed = Object.hasOwn(entries, backend) ? entries[backend] : undefined
      const entry = refOf(listed)
      const name = entry ?? (usesOwnReference(outgoing, listed) ? own : undefined)
      const explicit = entry !== undefined
      // A broken default must exclude the backends that rely on it as well.
      if (name === undefined) {
        return { strategy: undefined, authConfigRef: fallback, explicit, failure: byDefault?.failure }
      }
      const { value, failure } = resolve(name)
      return { strategy: value, failure, authConfigRef: name, explicit }
    },
  }
}

/** True when the member's own reference applies. `listed` is the entry for its backend. */
function usesOwnReference(
  outgoing: VirtualMCPServerSpec['outgoingAuth'],
  listed: BackendAuth | undefined,
): boolean {
  return outgoing?.source !== 'inline' || (listed ?? outgoing.default)?.type === 'discovered'
}

/** Returns the MCPExternalAuthConfig of an entry. A reference next to the type `discovered` is ignored. */
function refOf(auth: BackendAuth | undefined): string | undefined {
  return auth?.type === 'externalAuthConfigRef' ? auth.externalAuthConfigRef?.name : undefined
}

const conversionFailed = { notFound: 'ConversionFailed', notValid: 'ConversionFailed' }

const conflictingTypes: ReadonlySet<string> = new Set(['tokenExchange', 'cloudSts'])

function resolveConfig(context: Context, needs: PodNeeds, name: string): ConfigPart<Strategy> {
  const called = configCalled(context, 'MCPExternalAuthConfig', name, conversionFailed)
  if (called.failure) return called
  const config = called.value
  const server = context.parent.spec.authServerConfig
  if (server?.disableUpstreamTokenInjection && conflictingTypes.has(config.spec.type)) {
    const message = `disableUpstreamTokenInjection cannot be combined with type ${config.spec.type} of MCPExternalAuthConfig ${name}`
    return { failure: { reason: 'ConversionFailed', message } }
  }
  const upstreams = server?.upstreamProviders.map((upstream) => upstream.name)
  const part = toStrategy(config, { needs, upstreams, enableObo: context.settings.enableObo })
  if (part.failure) return part
  needs.revision(`externalAuth ${name}`, configHashOf(context, 'MCPExternalAuthConfig', name))
  return { value: part.value ?? { type: 'unauthenticated' } }
}
