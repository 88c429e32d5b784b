/** What keeps the memory of a session small: on one machine there is a process for each session of each server. */
import { setFlagsFromString } from 'node:v8'

/** Options of Node for the servers: memory counts more than the last tenth of speed. */
export const leanNode = ['--max-semi-space-size=1', '--optimize-for-size', '--v8-pool-size=0'] as const

/** Of a thread: small steps of the young generation save more memory than they cost time. */
export const leanLimits = { maxYoungGenerationSizeMb: 2 } as const

/** For this process, which has started already: its young generation does not grow, and collections take more. */
export function keepMemorySmall(): void {
  for (const flag of ['--semi-space-growth-factor=1', '--max-semi-space-size=1', '--optimize-for-size'])
    setFlagsFromString(flag)
}
