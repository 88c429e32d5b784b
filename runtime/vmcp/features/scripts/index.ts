/** Public API of code mode (`config.codeMode`): scripts that call tools. */
import type { CodeMode } from '../../../../schemas/index.ts'
import type { Feature } from '../../model/operation.ts'
import { type CodeModeParts, makeCodeMode, scriptWorker } from './feature.ts'
import { workerViolations } from '../../../process/index.ts'
import { scriptSettings } from './settings.ts'

const fingerprints = new WeakMap<Feature, string>()

export interface CodeModeOptions extends CodeModeParts {
  /** The current features. A feature with unchanged settings is reused. */
  readonly before?: readonly Feature[] | undefined
}

/** Returns the code mode feature for a configuration. Returns an empty list if code mode is disabled. */
export function codeModeFeature(config: CodeMode | undefined, options: CodeModeOptions): readonly Feature[] {
  if (!config?.enabled) return []
  const fingerprint = JSON.stringify(config)
  const known = options.before?.find((feature) => fingerprints.get(feature) === fingerprint)
  if (known) return [known]
  const feature = makeCodeMode(scriptSettings(config), options)
  fingerprints.set(feature, fingerprint)
  return [feature]
}

/** Returns the reasons why code mode cannot run although it is enabled. */
export function codeModeViolations(config: CodeMode | undefined): string[] {
  return config?.enabled ? workerViolations(scriptWorker).map((line) => `codeMode: ${line}`) : []
}
