/** The settings of scripts. Source: docs/reference/specification/virtual-server.md#codeMode, config.codeMode. */
import { type CodeMode, timerMs, withDefaults } from '../../../../schemas/index.ts'
import { ownMemory } from '../../../net/index.ts'
import type { PoolOptions } from '../../../process/index.ts'

export interface ScriptSettings {
  readonly stepLimit: number
  /** Maximum number of tool calls that a script may have in flight. */
  readonly parallelMaxConcurrency: number
  readonly toolCallTimeoutMs: number
  /** Timeout for a script in milliseconds. Includes the wait for a worker, but excludes elicitations. */
  readonly scriptTimeoutMs: number
  /** Maximum total memory of a script, in estimated bytes. */
  readonly maxBytes: number
  readonly maxScriptLength: number
}

const defaultScriptTimeoutMs = 60_000
const maxHeldBytes = 64 * 1024 * 1024
const longestScript = 256 * 1024

export function scriptSettings(config: CodeMode): ScriptSettings {
  return {
    stepLimit: config.stepLimit,
    parallelMaxConcurrency: config.parallelMaxConcurrency,
    // As in workflows, zero means that the timeout is not set.
    toolCallTimeoutMs: timerMs(config.toolCallTimeout) || timerMs(blank().toolCallTimeout),
    scriptTimeoutMs: defaultScriptTimeoutMs,
    maxBytes: maxHeldBytes,
    maxScriptLength: longestScript,
  }
}

/** Returns the default settings of code mode from the schema. */
function blank(): CodeMode {
  const kind = 'VirtualMCPServer' as const
  const doc = { kind, spec: { incomingAuth: { type: 'anonymous' }, config: { codeMode: {} } } }
  const { codeMode } = withDefaults<typeof kind>(doc).spec.config ?? {}
  if (!codeMode) throw new TypeError('code mode has no defaults')
  return codeMode
}

const heapLimitMb = 192
const maxRunning = 8
/**
 * Memory of a parked script in addition to the script's own allocations. The thread and the interpreter use this
 * memory.
 */
export const parkedBytes = 12 * 1024 * 1024

/**
 * Returns the number of concurrent scripts that fit into half of the memory (in bytes) if each script uses its full
 * memory limit. The result is at least 1, and 8 for 3 GiB or more. Scripts that are waiting for responses may occupy up
 * to a quarter of the memory.
 */
export function scriptPool(memory = ownMemory()): PoolOptions {
  const held = Math.floor(memory / 2 / (heapLimitMb * 1024 * 1024))
  const maxWorkers = Math.min(maxRunning, Math.max(1, held))
  return {
    tasks: 'scripts',
    maxWorkers,
    maxPerCaller: Math.max(1, Math.floor(maxWorkers * 0.75)),
    maxWaiting: 200,
    maxParked: 64,
    maxParkedPerCaller: 16,
    maxParkedBytes: Math.max(memory / 4, 2 * parkedBytes),
    maxIdle: Math.min(2, maxWorkers),
    idleMs: 300_000,
    heapMb: heapLimitMb,
  }
}
