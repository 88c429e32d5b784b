/** The programs to build: their entries and launchers. */
import type { BuildOptions } from 'esbuild'
import { bundleOptions, bundleParts } from './options.ts'

export interface BuiltProgram {
  readonly name: string
  /** Folder for the program's chunks. */
  readonly folder: string
  /** Sources, keyed by file name without extension: entries for the launchers, worker threads and parts. */
  readonly entries: Readonly<Record<string, string>>
  /** The entry that each launcher loads, keyed by launcher file name. */
  readonly launchers: Readonly<Record<string, string>>
  /**
   * True when the program serves the console's pages. The list of the program's packages then includes the packages
   * that are bundled in those pages.
   */
  readonly servesConsole?: true
}

export const programs: readonly BuiltProgram[] = [
  {
    name: 'gatehouse',
    folder: 'runtime',
    entries: {
      main: 'runtime/cli/main.ts',
      kubectl: 'runtime/tools/cluster/plugin.ts',
      'script-worker': 'runtime/vmcp/features/scripts/worker.ts',
      'workflow-worker': 'runtime/vmcp/features/workflows/evaluation/worker.ts',
      'openapi-worker': 'runtime/vmcp/backends/openapi/worker.ts',
      'lock-worker': 'runtime/tools/lock/worker.ts',
      ...bundleParts,
    },
    launchers: { gatehouse: 'main', 'kubectl-gatehouse': 'kubectl' },
    servesConsole: true,
  },
  {
    name: 'gatehouse-hooks',
    folder: 'hooks',
    entries: { main: 'hooks/server/main.ts', 'hooks-worker': 'hooks/server/worker.ts', ...bundleParts },
    launchers: { 'gatehouse-hooks': 'main' },
  },
]

/** Bundles a program into the caller's folder. */
export function programOptions({ entries }: BuiltProgram) {
  return {
    ...bundleOptions,
    entryPoints: { ...entries },
    chunkNames: '[name]-[hash]',
    splitting: true,
    logLevel: 'warning',
  } as const satisfies BuildOptions
}
