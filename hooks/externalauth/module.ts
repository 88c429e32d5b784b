/**
 * The interface that each type of MCPExternalAuthConfig implements.
 *
 * `validate` checks the settings on their own. `toRuntime` builds the outgoing strategy for one consumer, adds the
 * required secrets to the pod, and refers to each secret by the name of its variable.
 */
import type { input, MCPExternalAuthConfigSpec, Violation, SecretRef } from '../../schemas/index.ts'
import type { CredentialFiles } from '../runtime-config/client-auth.ts'
import type { PodNeeds } from '../runtime-config/needs.ts'
import type { ConfigPart } from '../sync/conditions.ts'
import type { HookSettings } from '../base/settings.ts'

export interface StrategyTarget {
  /** Name of the MCPExternalAuthConfig. */
  readonly name: string
  /** Part of variable names that identifies the MCPExternalAuthConfig. */
  readonly variable: string
  readonly needs: PodNeeds
  /** The upstream names of the consumer's embedded authorization server, in order; undefined without such a server. */
  readonly upstreams: readonly string[] | undefined
  readonly enableObo: boolean
}

export type Strategy = input.OutgoingStrategy

export interface ExternalAuthModule {
  /** Returns violations that the schema cannot express, with paths from `spec`. */
  readonly validate: (
    spec: MCPExternalAuthConfigSpec,
    settings: Pick<HookSettings, 'enableObo'>,
  ) => readonly Violation[]
  /** Lists the Secrets that the settings refer to. */
  readonly secrets: (spec: MCPExternalAuthConfigSpec) => readonly SecretRef[]
  /** Lists the Secrets that pods reread. Rotating such a Secret does not replace the pods. Default: none. */
  readonly rereadSecrets?: (spec: MCPExternalAuthConfigSpec) => readonly SecretRef[]
  /** Builds the strategy; undefined when the type does not authenticate to backends. */
  readonly toRuntime: (
    spec: MCPExternalAuthConfigSpec,
    target: StrategyTarget,
  ) => ConfigPart<Strategy | undefined>
}

/** Returns the volume names and directories for the files of the MCPExternalAuthConfig. */
export function credentialFiles({ needs, name }: StrategyTarget): CredentialFiles {
  return {
    needs,
    volume: (file) => `external-auth-${file}-${name}`,
    directory: (file) => `/etc/gatehouse/external-auth/${name}/${file}`,
  }
}

/** Drops undefined references. */
export function definedItems<T>(items: readonly (T | undefined)[]): readonly T[] {
  return items.filter((item) => item !== undefined)
}

/** Returns the message for a strategy that requires an ID token when the embedded server has no upstreams. */
export function noIdToken(type: string): string {
  return `Type ${type} requires an ID token from an upstream provider, but the embedded authorization server has no upstreams`
}

/** Returns the named subject provider, which must exist, or by default the embedded server's first upstream. */
export function subjectProvider(
  named: string | undefined,
  { upstreams }: StrategyTarget,
): ConfigPart<string | undefined> {
  if (named === undefined || named === '') return { value: upstreams?.[0] }
  if (upstreams === undefined) {
    return {
      failure: {
        reason: 'SubjectProviderUnknown',
        message: `The upstream provider ${named} requires an embedded authorization server`,
      },
    }
  }
  if (upstreams.includes(named)) return { value: named }
  const known =
    upstreams.length === 0 ? 'its list upstreamProviders is empty' : `it has ${upstreams.join(', ')}`
  return {
    failure: {
      reason: 'SubjectProviderUnknown',
      message: `The embedded authorization server has no upstream provider ${named}; ${known}`,
    },
  }
}
