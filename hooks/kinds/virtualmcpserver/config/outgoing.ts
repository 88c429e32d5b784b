/**
 * How the virtual server authenticates to each backend.
 *
 * Order: the entry for the backend in spec.outgoingAuth.backends, the member's own reference, the default, nothing. With
 * source inline only what this resource configures counts: a member's own reference does where an entry, or else the
 * default, is of type `discovered`, which means just that. A configuration that cannot be used leaves the backend out; it
 * never falls through to the default.
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
  /** Undefined: the default applies. */
  readonly strategy: Strategy | undefined
  readonly authConfigRef: string | undefined
  /** True when spec.outgoingAuth.backends names the configuration. */
  readonly explicit: boolean
  readonly failure: SyncFailure | undefined
}

export interface OutgoingConfig {
  /** `own` is the MCPExternalAuthConfig that the member itself names. */
  readonly strategyFor: (backend: string, own: string | undefined) => BackendStrategy
  readonly defaultStrategy: Strategy | undefined
}

/** Resolves configurations as they are asked for; secrets of those in use are asked of the pod. */
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
      const name = entry ?? (countsOwn(outgoing, listed) ? own : undefined)
      const explicit = entry !== undefined
      // A broken default must not open backends that rely on it.
      if (name === undefined) {
        return { strategy: undefined, authConfigRef: fallback, explicit, failure: byDefault?.failure }
      }
      const { value, failure } = resolve(name)
      return { strategy: value, failure, authConfigRef: name, explicit }
    },
  }
}

/** Whether a member's own reference counts, for the entry of its backend. */
function countsOwn(outgoing: VirtualMCPServerSpec['outgoingAuth'], listed: BackendAuth | undefined): boolean {
  return outgoing?.source !== 'inline' || (listed ?? outgoing.default)?.type === 'discovered'
}

/** Name of the MCPExternalAuthConfig that an entry demands; a reference beside type `discovered` means nothing. */
function refOf(auth: BackendAuth | undefined): string | undefined {
  return auth?.type === 'externalAuthConfigRef' ? auth.externalAuthConfigRef?.name : undefined
}

const conversionFailed = { notFound: 'ConversionFailed', notValid: 'ConversionFailed' }

const strippedBy: ReadonlySet<string> = new Set(['tokenExchange', 'cloudSts'])

function resolveConfig(context: Context, needs: PodNeeds, name: string): ConfigPart<Strategy> {
  const called = configCalled(context, 'MCPExternalAuthConfig', name, conversionFailed)
  if (called.failure) return called
  const config = called.value
  const server = context.parent.spec.authServerConfig
  if (server?.disableUpstreamTokenInjection && strippedBy.has(config.spec.type)) {
    const message = `disableUpstreamTokenInjection cannot be combined with type ${config.spec.type} of MCPExternalAuthConfig ${name}`
    return { failure: { reason: 'ConversionFailed', message } }
  }
  const upstreams = server?.upstreamProviders.map((upstream) => upstream.name)
  const part = toStrategy(config, { needs, upstreams, enableObo: context.settings.enableObo })
  if (part.failure) return part
  needs.revision(`externalAuth ${name}`, configHashOf(context, 'MCPExternalAuthConfig', name))
  return { value: part.value ?? { type: 'unauthenticated' } }
}
