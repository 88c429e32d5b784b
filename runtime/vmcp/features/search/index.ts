/** Public API of tool search (`config.optimizer`). */
import { hash } from 'node:crypto'
import type { Optimizer } from '../../../../schemas/index.ts'
import type { Feature } from '../../model/operation.ts'
import { makeOptimizer, type OptimizerParts } from './feature.ts'
import { searchSettings } from './settings.ts'

export { optimizerViolations } from './settings.ts'

const fingerprints = new WeakMap<Feature, string>()

export interface OptimizerOptions extends OptimizerParts {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The current features. A feature with unchanged settings is reused, including its indexes. */
  readonly before?: readonly Feature[] | undefined
}

/** Returns the tool search feature for a configuration. Returns an empty list if tool search is disabled. */
export function optimizerFeature(
  config: Optimizer | undefined,
  options: OptimizerOptions,
): readonly Feature[] {
  if (!config) return []
  const settings = searchSettings(config, options.env)
  const secret = settings.service?.apiKey?.reveal() ?? ''
  const fingerprint = hash('sha256', JSON.stringify([settings, secret]), 'base64url')
  const known = options.before?.find((feature) => fingerprints.get(feature) === fingerprint)
  if (known) return [known]
  const feature = makeOptimizer(settings, options)
  fingerprints.set(feature, fingerprint)
  return [feature]
}
