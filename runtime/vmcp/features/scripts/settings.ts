/** The settings of scripts. Source: docs/reference/specification/virtual-server.md#codeMode, config.codeMode. */
import { type CodeMode, timerMs, withDefaults } from '../../../../schemas/index.ts'
import { ownMemory } from '../../../net/index.ts'
import type { PoolOptions } from '../../../process/index.ts'

export interface ScriptSettings {
  readonly stepLimit: number
  /** Tool calls of one script that are in flight at once. */
  readonly parallelMaxConcurrency: number
  readonly toolCallTimeoutMs: number
  /** For a whole script, waiting for a worker included; elicitations are not counted. */
  readonly scriptTimeoutMs: number
  /** What a script may ask for in memory, in estimated bytes and all in all. */
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
    // Zero means that nothing was said, as for workflows.
    toolCallTimeoutMs: timerMs(config.toolCallTimeout) || timerMs(blank().toolCallTimeout),
    scriptTimeoutMs: defaultScriptTimeoutMs,
    maxBytes: maxHeldBytes,
    maxScriptLength: longestScript,
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

const heapLimitMb = 192
const maxRunning = 8
/** What a parked script holds besides what it asked for: its thread and the language. */
export const parkedBytes = 12 * 1024 * 1024

/**
 * As many scripts at a time as half of the memory (bytes) can hold when all of them use theirs up: 8 from 3 GiB on, and at
 * least one. Those that wait for answers may hold a quarter.
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
