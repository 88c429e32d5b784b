/**
 * What each type of MCPExternalAuthConfig provides.
 *
 * `validate` checks the settings by themselves; `toRuntime` makes the outgoing strategy of one consumer, with names of
 * variables in place of secrets, which it asks of the pod.
 */
import type { input, MCPExternalAuthConfigSpec, Violation, SecretRef } from '../../schemas/index.ts'
import type { PodNeeds } from '../runtime-config/needs.ts'
import type { ConfigPart } from '../sync/conditions.ts'
import type { HookSettings } from '../base/settings.ts'

export interface StrategyTarget {
  /** Part of variable names that stands for the MCPExternalAuthConfig. */
  readonly variable: string
  readonly needs: PodNeeds
  /** Upstream names of the consumer's embedded authorization server, first one first; undefined without a server. */
  readonly upstreams: readonly string[] | undefined
  readonly enableObo: boolean
}

export type Strategy = input.OutgoingStrategy

export interface ExternalAuthModule {
  /** Problems that the schema cannot say, with paths from `spec`. */
  readonly validate: (
    spec: MCPExternalAuthConfigSpec,
    settings: Pick<HookSettings, 'enableObo'>,
  ) => readonly Violation[]
  /** Secrets that the settings name. */
  readonly secrets: (spec: MCPExternalAuthConfigSpec) => readonly SecretRef[]
  /** The strategy; undefined when the type is not a way to authenticate to a backend. */
  readonly toRuntime: (
    spec: MCPExternalAuthConfigSpec,
    target: StrategyTarget,
  ) => ConfigPart<Strategy | undefined>
}

/** The members of a reference list that are there. */
export function present<T>(items: readonly (T | undefined)[]): readonly T[] {
  return items.filter((item) => item !== undefined)
}

/** A subject provider: the one named, which must exist, or the first upstream of an embedded server. */
export function subjectProvider(
  named: string | undefined,
  { upstreams }: StrategyTarget,
): ConfigPart<string | undefined> {
  if (named === undefined || named === '') return { value: upstreams?.[0] }
  if (upstreams === undefined) {
    return {
      failure: {
        reason: 'SubjectProviderUnknown',
        message: `The upstream provider ${named} is named, but there is no embedded authorization server`,
      },
    }
  }
  if (upstreams.includes(named)) return { value: named }
  return {
    failure: {
      reason: 'SubjectProviderUnknown',
      message: `The embedded authorization server has no upstream provider ${named}; it has ${upstreams.join(', ')}`,
    },
  }
}
