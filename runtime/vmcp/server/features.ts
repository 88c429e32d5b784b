/**
 * Creates the configured features, outermost first. Tool search comes before scripts, so a search also finds the script
 * tool.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer and config.codeMode.
 */
import type { VmcpConfig } from '../../config/index.ts'
import type { Caller, Log } from '../../net/index.ts'
import type { AuditTrail, Instruments, Observer } from '../../observe/index.ts'
import type { Clock } from '../model/time/clock.ts'
import { codeModeFeature } from '../features/scripts/index.ts'
import { optimizerFeature } from '../features/search/index.ts'
import type { Feature } from '../model/operation.ts'

export interface FeatureParts {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly telemetry: Instruments
  readonly audit: AuditTrail
  /** Resolves to false if a policy forbids the caller to use one of Gatehouse's own tools. */
  readonly permits: (caller: Caller, tool: string, signal: AbortSignal) => Promise<boolean>
  readonly observer: Pick<Observer, 'attributeTo'>
  readonly clock: Clock
  readonly log: Log
  /** The previous features. Features with unchanged settings are kept. */
  readonly before?: readonly Feature[] | undefined
}

export function makeFeatures(config: VmcpConfig, parts: FeatureParts): readonly Feature[] {
  return [...optimizerFeature(config.optimizer, parts), ...codeModeFeature(config.codeMode, parts)]
}

/** Closes features that are no longer configured. Returns true if a feature was added or removed. */
export function closeRemovedFeatures(before: readonly Feature[], after: readonly Feature[]): boolean {
  const gone = before.filter((feature) => !after.includes(feature))
  for (const feature of gone) void feature.close()
  return gone.length > 0 || after.length > before.length
}
