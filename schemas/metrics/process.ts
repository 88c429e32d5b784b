/** Metrics that every program reports about its process, read at each scrape. */
import { readdirSync } from 'node:fs'
import { processMetrics } from './programs.ts'
import { metricText, type MetricSample } from './text.ts'

/** Start time of this process in Unix seconds, constant across scrapes. */
const startedAt = Math.round(performance.timeOrigin) / 1_000

export type ProcessSamples = { readonly [M in keyof typeof processMetrics]: readonly MetricSample[] }

export function processSamples(version: string): ProcessSamples {
  const { user, system } = process.cpuUsage()
  const files = openFiles()
  return {
    processCpu: [[(user + system) / 1e6]],
    processMemory: [[process.memoryUsage.rss()]],
    processStart: [[startedAt]],
    processFiles: files === undefined ? [] : [[files]],
    buildInfo: [[1, { version, node: process.versions.node }]],
  }
}

/** Returns the samples as text. */
export function processText(version: string): string {
  const samples = processSamples(version)
  return Object.entries(processMetrics)
    .map(([name, row]) => metricText(row, samples[name as keyof typeof processMetrics]))
    .join('')
}

function openFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}
