/** The settings of scripts. Source: spec document 3, config.codeMode. */
import { type CodeMode, parseDuration, withDefaults } from '../../../schemas/index.ts'

export interface ScriptSettings {
  readonly stepLimit: number
  /** Tool calls of one script that are under way at once. */
  readonly parallelMaxConcurrency: number
  readonly toolCallTimeoutMs: number
  /** For a whole script, waiting for a worker included; questions to the user are not counted. */
  readonly scriptTimeoutMs: number
  /** What a script may ask for in memory, in estimated bytes and all in all. */
  readonly maxBytes: number
  readonly maxScriptLength: number
}

const SCRIPT_TIMEOUT_MS = 60_000
const MAX_BYTES = 64 * 1024 * 1024
const MAX_SCRIPT_LENGTH = 256 * 1024

export function scriptSettings(config: CodeMode): ScriptSettings {
  return {
    stepLimit: config.stepLimit,
    parallelMaxConcurrency: config.parallelMaxConcurrency,
    // Zero means that nothing was said, as for workflows.
    toolCallTimeoutMs: parseDuration(config.toolCallTimeout) || parseDuration(blank().toolCallTimeout),
    scriptTimeoutMs: SCRIPT_TIMEOUT_MS,
    maxBytes: MAX_BYTES,
    maxScriptLength: MAX_SCRIPT_LENGTH,
  }
}

/** Code mode of which nothing was said: the defaults of the schema. */
function blank(): CodeMode {
  const kind = 'VirtualMCPServer' as const
  const doc = { kind, spec: { incomingAuth: { type: 'anonymous' }, config: { codeMode: {} } } }
  const { codeMode } = withDefaults<typeof kind>(doc).spec.config ?? {}
  if (!codeMode) throw new TypeError('code mode has no defaults')
  return codeMode
}
