/**
 * The features that a configuration asks for, outermost first: tool search, then scripts, so that a search finds the
 * script tool too.
 * Source: spec document 3, config.optimizer and config.codeMode.
 */
import type { VmcpConfig } from '../config/index.ts'
import type { Log } from '../net/index.ts'
import type { Feature } from './pipeline.ts'

export interface FeatureParts {
  readonly log: Log
  /** The features in force until now; one whose settings are the same goes on. */
  readonly before?: readonly Feature[] | undefined
}

export function makeFeatures(_config: VmcpConfig, _parts: FeatureParts): readonly Feature[] {
  return []
}
